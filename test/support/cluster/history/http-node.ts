/** A node of `npm run cluster`, as a process of its own that is called by HTTP. */
import { rm } from 'node:fs/promises';
import path from 'node:path';
import type { LocalNode } from '../../../../deploy/local/cluster.ts';
import { connect, type Client, type Reply } from '../../running/client.ts';
import { errorBody, ranked } from '../../running/wire.ts';
import { NodeGone, Refused, type LoadNode, type MortalNode } from './load-node.ts';
import type { CallKind, CallOf, NodeAnswers, NodeCall } from './node-calls.ts';

export class HttpNode implements LoadNode, MortalNode {
  readonly #node: LocalNode;
  readonly name: string;
  readonly isStalled = false;
  isUp = true;
  life = 1;

  constructor(node: LocalNode) {
    this.#node = node;
    this.name = path.basename(node.directory);
  }

  async call<Kind extends CallKind>(call: CallOf<Kind>): Promise<NodeAnswers[Kind]> {
    if (!this.isUp) throw new NodeGone(this.name);
    const client = connect(this.#node.url, call.apiKey);
    const reply = await send(client, call as NodeCall).catch(() => {
      throw new NodeGone(this.name);
    });
    if (reply.status >= 300) throw refusalOf(reply);
    return answerOf(call.kind, reply) as NodeAnswers[Kind];
  }

  async kill(): Promise<void> {
    this.isUp = false;
    await this.#node.stop('SIGKILL');
  }

  /** Stops the process by SIGTERM. */
  async stop(): Promise<void> {
    this.isUp = false;
    await this.#node.stop();
  }

  async loseDisk(): Promise<void> {
    await rm(path.join(this.#node.directory, 'data'), { recursive: true, force: true });
  }

  async start(): Promise<void> {
    await this.#node.start();
    this.life += 1;
    this.isUp = true;
  }
}

async function send(client: Client, call: NodeCall): Promise<Reply> {
  const { indexId } = call;
  if (call.kind === 'remove') return client.deleteDocument(indexId, call.docId);
  if (call.kind === 'search') {
    const body = { query: 'w1 w2', top_k: 100 };
    return client.search(indexId, body);
  }
  if (call.kind === 'hold') throw new Error('no request holds a slot and does nothing');
  const documents = call.documents.map(({ docId, version, text }) => ({
    doc_id: docId,
    text,
    metadata: { version },
  }));
  return client.upsert(indexId, documents);
}

function answerOf(kind: CallKind, { body }: Reply): NodeAnswers[CallKind] {
  if (kind !== 'search') return true;
  return ranked
    .parse(body)
    .results.map(({ doc_id: docId, metadata }) => [docId, Number(metadata['version'])] as const);
}

function refusalOf({ status, body, text }: Reply): Refused {
  const parsed = errorBody.safeParse(body);
  return new Refused(parsed.success ? parsed.data.error.code : String(status), text);
}
