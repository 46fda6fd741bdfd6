/** The service behind messages: what comes back, what is released, and what ends with the other thread. */
import { randomUUID } from 'node:crypto';
import { MessageChannel } from 'node:worker_threads';
import { expect, it, onTestFinished } from 'vitest';
import { ServiceError, toFailure, unavailable } from '../../../src/errors.ts';
import type { AdmittedRequest, RequestContext, Service } from '../../../src/service/contract.ts';
import { Link } from '../../../src/service/threads/link.ts';
import { hostService, remoteService } from '../../../src/service/threads/remote-service.ts';
import { withCode } from '../../../src/system-errors.ts';
import { authorization, openWatchedService, tenantId } from '../../support/http/watched-service.ts';
import { until } from '../../support/http/http-server.ts';
import { contextOf, rejection } from '../../support/stages/service-stage.ts';

async function stage() {
  const { port1, port2 } = new MessageChannel();
  onTestFinished(() => port1.close());
  const service = await openWatchedService();
  const host = hostService(service, async () => undefined);
  const hosting = new Link(port2, host.handlers);
  const link = new Link(port1, {});
  const remote = remoteService(link);
  return { service, host, hosting, link, remote };
}

async function admitted(remote: Service, signal?: AbortSignal) {
  const request: AdmittedRequest = await remote.admit(authorization);
  const context: RequestContext = { ...contextOf(request.tenant, Date.now()), ...(signal && { signal }) };
  return { request, context };
}

const noUsage = { inputTokens: 0, documentCount: 0, chunkCount: 0, candidateCount: 0, latencyMs: 0 };
const search = { query: 'river', returnComponents: false };

it('an operation has its arguments, one context and its tenant; its result, stages and spent tokens come back', async () => {
  const { service, remote } = await stage();
  service.before = ({ spent, timings }, name) => {
    spent.inputTokens += 3;
    timings.note(name, { startedAt: performance.now(), ms: 0.5 });
  };
  service.ranked = { results: [], usage: noUsage };
  const { request, context } = await admitted(remote);
  const index = await remote.createIndex(context, { name: randomUUID(), metadataSchema: '{}' });
  expect(index).toMatchObject({ tenantId });
  expect(await remote.search(context, index.id, search)).toMatchObject({ results: [] });
  expect(context.spent.inputTokens).toBe(6);
  const [[first, { startedAt }] = ['', { startedAt: 0 }], [second] = ['']] = context.timings.entries();
  expect([first, second]).toEqual(['createIndex', 'search']);
  expect(Math.abs(startedAt - performance.now())).toBeLessThan(60_000);
  const [create, found] = service.calls;
  expect(create?.context).toBe(found?.context);
  expect(found?.context).toMatchObject({
    tenant: request.tenant,
    requestId: context.requestId,
    deadlineMs: context.deadlineMs,
  });
  expect(found?.arguments).toEqual([index.id, search]);
});

it('the permit is released once, and the request is known no more', async () => {
  const { service, remote } = await stage();
  const { request, context } = await admitted(remote);
  expect(service.permitsHeld).toBe(1);
  request.permit.release();
  request.permit.release();
  await until(() => service.permitsHeld === 0);
  await expect(remote.usage(context)).rejects.toThrow(
    'this is a bug: an operation of a request that was released',
  );
});

it('requests of one tenant that are admitted in one message stay apart', async () => {
  const { service, remote } = await stage();
  const [one, other] = await Promise.all([admitted(remote), admitted(remote)]);
  other.request.permit.release();
  await until(() => service.permitsHeld === 1);
  await expect(remote.usage(one.context)).resolves.toBeDefined();
  one.request.permit.release();
  await until(() => service.permitsHeld === 0);
});

it('a request that its operation charged is not counted by a message of its own; another one is', async () => {
  const { service, remote } = await stage();
  const { context } = await admitted(remote);
  service.before = ({ spent }, name) => void (name === 'score' && (spent.isCharged = true));
  service.ranked = { results: [], usage: noUsage };
  await remote.score(context, { query: 'river', documents: [], returnComponents: false });
  await remote.countRequest(context);
  expect(service.counted).toHaveLength(0);
  await remote.countRequest((await admitted(remote)).context);
  expect(service.counted).toHaveLength(1);
});

it('a refusal keeps all that its answer needs', async () => {
  const { service, remote } = await stage();
  const rate = { limit: 60, remaining: 0, resetSeconds: 12.5 };
  const cause = withCode('ENOSPC', 'no space left on device');
  const given = new ServiceError('rate_limit_exceeded', 'too many', {
    issues: [{ path: 'a', message: 'b', code: 'c' }],
    retryAfterSeconds: 13,
    rate,
    httpStatus: 413,
    tenantId,
    cause,
  });
  service.admitFailure = given;
  const error = await rejection(remote.admit(authorization));
  expect(error).toBeInstanceOf(ServiceError);
  expect(toFailure(error)).toEqual(toFailure(given));
});

it.each([
  ['a defect', new TypeError('x is undefined'), { name: 'TypeError', message: 'x is undefined' }],
  ['an abort', new DOMException('gone', 'AbortError'), { name: 'AbortError' }],
  ['the system', withCode('ENOSPC', 'no space'), { code: 'service_unavailable' }],
])('a failure of an operation is what it was: %s', async (_, thrown, expected) => {
  const { service, remote } = await stage();
  const { context } = await admitted(remote);
  service.before = ({ spent }) => {
    spent.inputTokens = 9;
    throw thrown;
  };
  expect(await rejection(remote.usage(context))).toMatchObject(expected);
  expect(context.spent.inputTokens).toBe(9);
});

it('answers that come late, after others have gone, are not lost', async () => {
  const { service, remote } = await stage();
  const { context } = await admitted(remote);
  const ends = [1, 2, 3].map(() => Promise.withResolvers<void>());
  service.before = () => ends[service.calls.length - 1]!.promise;
  const operations = ends.map(() => remote.usage(context));
  await until(() => service.calls.length === 3);
  for (const at of [1, 2, 0]) {
    ends[at]!.resolve();
    expect(await operations[at]).toMatchObject({ tenant: 'Test' });
  }
});

it('when the client leaves, the operation is cancelled, and goes on until it has ended', async () => {
  const { service, remote } = await stage();
  const client = new AbortController();
  const { context } = await admitted(remote, client.signal);
  const ended = Promise.withResolvers<void>();
  service.before = () => ended.promise;
  const operation = remote.usage(context);
  await until(() => service.calls.length === 1);
  const signal = service.calls[0]!.context.signal;
  expect(signal.aborted).toBe(false);
  client.abort();
  await until(() => signal.aborted);
  expect(service.permitsHeld).toBe(1);
  ended.resolve();
  await operation;
  await remote.countLeft(context);
  expect(service.left).toEqual([service.calls[0]!.context]);
});

it('an operation of a client that has left before is cancelled at once', async () => {
  const { service, remote } = await stage();
  const { context } = await admitted(remote, AbortSignal.abort());
  await remote.countLeft(context);
  expect(service.left[0]?.signal.aborted).toBe(true);
});

it('a thread that has ended holds no permit: its operations are cancelled and waited for', async () => {
  const { service, host, remote } = await stage();
  const { context } = await admitted(remote);
  await admitted(remote);
  const ended = Promise.withResolvers<void>();
  service.before = () => ended.promise;
  const operation = remote.usage(context);
  await until(() => service.calls.length === 1);
  host.close();
  await until(() => service.permitsHeld === 1);
  expect(service.calls[0]!.context.signal.aborted).toBe(true);
  ended.resolve();
  await operation;
  await until(() => service.permitsHeld === 0);
  // An admission that was under way.
  await remote.admit(authorization);
  expect(service.permitsHeld).toBe(0);
});

it('calls to a thread that has ended fail', async () => {
  const { service, link, remote } = await stage();
  const { context } = await admitted(remote);
  service.before = () => new Promise(() => {});
  const operation = rejection(remote.usage(context));
  await until(() => service.calls.length === 1);
  link.close(unavailable('the thread has ended'));
  expect(await operation).toMatchObject({ message: 'the thread has ended' });
  await expect(remote.readiness()).rejects.toThrow('the thread has ended');
});
