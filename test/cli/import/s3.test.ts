/** Imports of objects of a real S3 server. */
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import type { RunningSeaweed } from '../../../deploy/local/seaweedfs.ts';
import { readBlocks } from '../../../src/cli/blocks.ts';
import { openInput, type InputFile } from '../../../src/cli/import/sources/input-file.ts';
import { serversMs, startTestSeaweed } from '../../support/cluster/servers.ts';
import { ApiDouble } from '../../support/http/api-double.ts';
import { errorBody, startLooseS3 } from '../../support/network/loose-s3.ts';
import { run, runJson } from '../../support/commands/command-process.ts';
import type { RunOptions } from '../../support/commands/command-here.ts';

let weed: RunningSeaweed;
let client: S3Client;
let api: ApiDouble;
let options: RunOptions;

beforeAll(async () => {
  weed = await startTestSeaweed();
  Object.assign(process.env, weed.environment);
  client = new S3Client({ forcePathStyle: true });
}, serversMs);

afterAll(async () => {
  client.destroy();
  await weed.stop();
});

beforeEach(async () => {
  api = new ApiDouble();
  const service = { MAXSIMD_URL: await api.listen(), MAXSIMD_API_KEY: 'qkv_live_test' };
  options = { environment: { ...weed.environment, ...service } };
});

afterEach(() => api.close());

async function put(key: string, body: string | Buffer): Promise<string> {
  await client.send(new PutObjectCommand({ Bucket: weed.bucket, Key: key, Body: body }));
  return `s3://${weed.bucket}/${key}`;
}

const importFrom = (url: string, ...more: string[]): ReturnType<typeof runJson> =>
  runJson(['import', url, '--index', 'books', ...more], options);

const parquet = path.resolve(import.meta.dirname, '../../fixtures/parquet/zstd.parquet');

it.each([
  ['jsonl', 'a b/rows+1.jsonl', '{"id":"a","text":"t"}\n{"id":"b","text":"t"}\n', 2],
  ['gzipped JSON', 'rows.json.gz', gzipSync('[{"id":"a","text":"t"}]'), 1],
  ['CSV', 'rows.csv', 'id,text,n\na,t,1\nb,t,2\n', 2],
  ['Parquet', 'rows.parquet', readFileSync(parquet), 3],
  ['Markdown', 'notes/a.md', '---\ntitle: T\n---\nBody\n', 1],
])('an object of %s is imported', async (_, key, body, count) => {
  const { document, exitCode, stderr } = await importFrom(await put(key, body));
  expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 });
  expect(document).toMatchObject({ done: count, failed: 0 });
  expect(api.documents.has(key.endsWith('.md') ? 'a.md' : 'a')).toBe(true);
});

it('an object of several parts is whole, and one that changes meanwhile is refused', async () => {
  const text = Buffer.from('0123456789abcdef'.repeat(1_200_000));
  const url = await put('large', text);
  const input = await openInput(url);
  const parts: Buffer[] = [];
  for await (const part of input.stream()) parts.push(part as Buffer);
  expect(Buffer.concat(parts).equals(text)).toBe(true);
  expect(parts.length).toBeGreaterThan(1);
  expect(String(await input.slice(16, 20))).toBe('0123');
  await put('large', 'another content');
  const changed = `cannot read ${url}: it has changed while it was read`;
  await expect(input.slice(0, 4)).rejects.toThrow(changed);
  await expect(readBlocks(input.stream(), url).next()).rejects.toMatchObject({ message: changed });
  expect((await openInput(url)).version).not.toBe(input.version);
});

it('a server that is looser than S3 gives every byte of the object, or is refused', async () => {
  const loose = await startLooseS3();
  onTestFinished(() => loose.close());
  onTestFinished(() => void vi.unstubAllEnvs());
  for (const [name, value] of Object.entries(loose.environment)) vi.stubEnv(name, value);
  const url = 's3://bucket/rows';
  const opened = async (): Promise<InputFile> => {
    loose.content = Buffer.from('0123456789');
    return openInput(url);
  };
  expect(String(await (await opened()).slice(2, 5))).toBe('234');
  for (const later of ['another content', '01']) {
    const input = await opened();
    loose.content = Buffer.from(later);
    // The condition of the request is ignored.
    await expect(input.slice(2, 5)).rejects.toThrow(`cannot read ${url}: it has changed while it was read`);
  }
  const input = await opened();
  loose.ignoresRanges = true;
  await expect(input.slice(2, 5)).rejects.toThrow(
    `cannot read ${url}: a request for 3 bytes was answered with 10`,
  );
  loose.refusal = { status: 405, body: errorBody('MethodNotAllowed') };
  await expect(input.slice(2, 5)).rejects.toThrow(
    `cannot read ${url}: the object store answers 405 MethodNotAllowed`,
  );
});

it.each([
  ['goes on', 200, 100],
  ['starts over once the object has changed', 210, 0],
])('an import that stopped %s', async (_, count, resumed) => {
  const rows = (many: number): string =>
    Array.from({ length: many }, (_row, n) => `{"id":"d${n}","text":"t"}\n`).join('');
  api.documentsMax = 120;
  const url = await put('rows.jsonl', rows(200));
  const stopped = await importFrom(url, '--concurrency', '1');
  expect(stopped.document).toMatchObject({ done: 100, error: { code: 'validation_error' } });
  api.documentsMax = 1000;
  if (count !== 200) await put('rows.jsonl', rows(count));
  expect((await importFrom(url)).document).toMatchObject({ done: count, resumed });
});

it('what cannot be read is named with the reason', async () => {
  const messageFor = async (url: string): Promise<string> => (await importFrom(url)).document.error.message;
  const missing = `s3://${weed.bucket}/missing.jsonl`;
  expect(await messageFor(missing)).toBe(`cannot read ${missing}: there is no such object`);
  expect(await messageFor('s3://bucket')).toMatch(/a URL s3:\/\/BUCKET\/KEY names an object$/);
  const url = await put('rows.jsonl', '{"id":"a","text":"t"}\n');
  options = { environment: { ...options.environment, AWS_SECRET_ACCESS_KEY: 'wrong' } };
  expect(await messageFor(url)).toBe(`cannot read ${url}: the credentials of AWS may not read it`);
  const { AWS_REGION: _, ...environment } = options.environment!;
  const { stderr, exitCode } = await run(['import', url, '--index', 'books'], { environment });
  expect(exitCode).toBe(1);
  expect(stderr).toMatch(/cannot read .*: Region is missing\n$/);
  expect(api.requests).toEqual([]);
});
