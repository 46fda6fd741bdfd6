/** The object store on a server that is looser than S3, or that is none. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { explained, whyAway } from '../../../src/away-reasons.ts';
import type { ObjectStore } from '../../../src/index/storage/object-store.ts';
import { openS3ObjectStore } from '../../../src/index/storage/s3-object-store.ts';
import { describeError } from '../../../src/observation/logging.ts';
import { errorBody, startLooseS3, type LooseS3 } from '../../support/network/loose-s3.ts';

let loose: LooseS3;
let store: ObjectStore;
beforeAll(async () => {
  loose = await startLooseS3();
});
afterAll(() => loose.close());
beforeEach(() => {
  for (const [name, value] of Object.entries(loose.environment)) vi.stubEnv(name, value);
  Object.assign(loose, { content: Buffer.from('0123456789'), ignoresRanges: false, refusal: undefined });
  store = openS3ObjectStore('s3://bucket/prefix');
});
afterEach(() => {
  store.close();
  vi.unstubAllEnvs();
});

async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => expect.unreachable('it fails'),
    (error: unknown) => error,
  );
}

it('a part that comes with the checksum of the whole object is read', async () => {
  expect(String(await store.readPart('a', 3, 4))).toBe('3456');
});

it('a part beyond the end is empty, whatever the code of the answer', async () => {
  expect(await store.readPart('a', 10, 4)).toEqual(Buffer.alloc(0));
});

it('an object that is missing when it is removed is removed', async () => {
  await expect(store.remove('a')).resolves.toBeUndefined();
});

it.each([
  [400, errorBody('InvalidRequest'), 'answers, and refuses this request', '400 InvalidRequest'],
  [400, 'a page for people', 'answers, and refuses this request', '400'],
  [404, '', 'answers, and refuses this request', '404'],
  [404, '<html><h1>404 Not Found</h1></html>', 'answers, and refuses this request', '404'],
  [405, errorBody('MethodNotAllowed'), 'answers, and refuses this request', '405 MethodNotAllowed'],
  [409, errorBody('OperationAborted'), 'answers, and refuses this request', '409 OperationAborted'],
  [501, errorBody('NotImplemented'), 'answers, and refuses this request', '501 NotImplemented'],
  [403, errorBody('RequestTimeTooSkewed'), 'has a clock that differs too much from this one', undefined],
  [502, '', 'answers with an error of its own', '502'],
  [507, errorBody('XMinioStorageFull'), 'answers with an error of its own', '507 XMinioStorageFull'],
])('an answer %i %s has a reason, and the log has the answer', async (status, body, reason, logged) => {
  loose.refusal = { status, body };
  for (const work of [() => store.ping(), () => store.readPart('a', 0, 4), () => store.remove('a')]) {
    const error = await failureOf(work());
    expect(error).toMatchObject({
      code: 'service_unavailable',
      message: 'the object store cannot be reached',
    });
    expect(whyAway(error)).toBe(reason);
    expect(describeError(error).cause?.message).toBe(logged);
    const words = `the object store cannot be reached: it ${reason}${logged === undefined ? '' : ` (${logged})`}`;
    expect(explained(error)).toMatchObject({ message: words });
  }
});

it('a server that gives other bytes than those that were put, or asked for, is no object store', async () => {
  const reason = 'answers otherwise than an object store';
  expect(whyAway(await failureOf(store.ping()))).toBe(reason);
  loose.ignoresRanges = true;
  expect(whyAway(await failureOf(store.readPart('a', 0, 4)))).toBe(reason);
});
