/**
 * The process of a node in the history battery. Backend, service and engine are real. The encoder takes words for tokens. Calls
 * are messages and not HTTP. The process ends with its parent.
 */
import './shifted-clock.ts';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { joinCluster } from '../../../../src/app/cluster.ts';
import { parseConfig } from '../../../../src/app/config.ts';
import type { ClusterCatalog } from '../../../../src/catalog/cluster-contract.ts';
import { ServiceError } from '../../../../src/errors.ts';
import { createEngine } from '../../../../src/index/engine/native.ts';
import { createLogger } from '../../../../src/observation/logging.ts';
import { createMetrics } from '../../../../src/observation/metrics.ts';
import type { RequestContext } from '../../../../src/service/contract.ts';
import { createService } from '../../../../src/service/create-service.ts';
import { StageTimings } from '../../../../src/service/stage-timings.ts';
import { WordEncoder, wordModel } from '../../encoder/word-encoder.ts';
import type { FromNode, NodeAnswers, NodeCall, ToNode } from './node-calls.ts';
import { withoutHeads } from './planted-node.ts';

/** Leases of merges are so short that a stopped node loses its lease. */
const leaseMs = 1_500;
const searchMs = 10_000;
const writeMs = 30_000;

let sleepsAtSwap = false;

process.on('disconnect', () => process.exit(0));

const config = parseConfig(process.env);
const logger = createLogger({ level: config.MAXSIMD_LOG_LEVEL });
const cluster = await joinCluster(config, logger, createMetrics());
const catalog = planted(sleepy(cluster.catalog));
const blobs = cluster.blobs as { readonly objects: unknown };
const service = await createService({
  ...cluster,
  catalog,
  blobs: { ...blobs, catalog } as never,
  encoders: new WordEncoder(),
  engine: createEngine({ threads: 1, kernel: 'auto' }),
  modelOfMoment: (name = wordModel.name) => ({ name }),
  exactTokenVectorsMax: 1_000_000,
  // Segments are so small that merges and codes come often.
  indexSettings: { sealedSegmentsMax: 4, codesTokenVectorsMin: 200 },
  onBackgroundError: (job, error) => send({ job, message: textOf(error) }),
});

function sleepy(real: ClusterCatalog): ClusterCatalog {
  return {
    ...real,
    acquireMergeLease: (indexId, nodeId) => real.acquireMergeLease(indexId, nodeId, leaseMs),
    renewMergeLease: (lease) => real.renewMergeLease(lease, leaseMs),
    async swapMerged(input) {
      if (sleepsAtSwap) {
        sleepsAtSwap = false;
        await new Promise((resolve) => process.send?.({ asleep: true } satisfies FromNode, resolve));
        process.kill(process.pid, 'SIGSTOP');
      }
      return real.swapMerged(input);
    },
  };
}

function planted(real: ClusterCatalog): ClusterCatalog {
  return process.env['TEST_PLANTED'] === 'heads' ? withoutHeads(real) : real;
}

function send(message: FromNode): void {
  process.send?.(message);
}

/** The message of an error with those of its causes. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message} <- ${textOf(error.cause)}`;
}

/** Serves a call in the order of the HTTP layer: admission, operation, count in the ledger. Then the slot is released. */
async function answer(call: NodeCall): Promise<NodeAnswers[NodeCall['kind']]> {
  const { tenant, permit } = await service.admit(`Bearer ${call.apiKey}`);
  const from = steadyMs();
  try {
    const context: RequestContext = {
      requestId: randomUUID(),
      tenant,
      signal: new AbortController().signal,
      deadlineMs: Date.now() + (call.kind === 'search' ? searchMs : writeMs),
      startedAtMs: Date.now(),
      timings: new StageTimings(),
      spent: { inputTokens: 0, documents: 0 },
    };
    const value = await operate(context, call);
    await service.countRequest(context);
    return call.kind === 'hold' ? [from, steadyMs()] : value;
  } finally {
    permit.release();
  }
}

async function operate(context: RequestContext, call: NodeCall): Promise<NodeAnswers[NodeCall['kind']]> {
  const { indexId } = call;
  if (call.kind === 'upsert') {
    const documents = call.documents.map(({ docId, version, text }) => ({
      docId,
      text,
      metadata: JSON.stringify({ version }),
    }));
    const { failed } = await service.upsertDocuments(context, indexId, documents);
    if (failed.length > 0) throw new Error(`${failed.length} documents failed`);
    return true;
  }
  if (call.kind === 'remove') return service.deleteDocument(context, indexId, call.docId);
  if (call.kind === 'search') {
    const request = { query: 'w1 w2', topK: 500, candidateK: 500, returnComponents: false };
    const { results } = await service.search(context, indexId, request);
    return results.map(({ docId, metadata }) => [
      docId,
      (JSON.parse(metadata) as { version: number }).version,
    ]);
  }
  await pause(call.ms);
  return true;
}

function steadyMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

process.on('message', (message: ToNode) => {
  if (!('call' in message)) {
    sleepsAtSwap = message.sleepAtSwap;
    return;
  }
  const { id, call } = message;
  answer(call).then(
    (value) => send({ id, value }),
    (error: unknown) => {
      const code = error instanceof ServiceError ? error.code : 'defect';
      send({ id, code, message: code === 'defect' ? String((error as Error).stack) : textOf(error) });
    },
  );
});
send({ ready: true });
