/** Upserting and deleting documents. */
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { looseKey } from '../../../src/index/terms/loose-keys.ts';
import { termsOfKeys } from '../../../src/index/terms/match-terms.ts';
import {
  documentsOf,
  openServiceStage,
  rejection,
  type ServiceStage,
} from '../../support/stages/service-stage.ts';

let stage: ServiceStage;
beforeAll(async () => {
  stage = await openServiceStage();
});
afterAll(() => stage[Symbol.asyncDispose]());

describe('records', () => {
  it('have the terms of the match fields that their index has when they are written', async () => {
    const { service, directory } = stage;
    const tenant = await stage.newTenant();
    const make = async (matchFields: readonly string[]) =>
      (await service.createIndex(tenant.context(), { name: matchFields.join(), matchFields })).id;
    const [parts, plain] = [await make(['part.number']), await make([])];
    const put = (indexId: string, docId: string, metadata: object) =>
      service.upsertDocuments(
        tenant.context(),
        indexId,
        documentsOf({ [docId]: 'words' }, JSON.stringify(metadata)),
      );
    const hasTerm = async (indexId: string, field: string, text: string): Promise<boolean> => {
      const folder = path.join(directory, 'segments', indexId);
      const segments = (await readdir(folder)).filter((name) => name.endsWith('.seg'));
      const contents = await Promise.all(segments.map((name) => readFile(path.join(folder, name))));
      return contents.some((content) =>
        content.includes(Buffer.from(termsOfKeys([looseKey(text)!], [field]))),
      );
    };
    const metadata = { part: { number: ['E11.65', 'N 7'] }, code: 'X-1' };
    for (const id of [parts, plain]) await put(id, 'a', metadata);
    for (const text of ['e11 65', 'N7']) {
      expect(await hasTerm(parts, 'part.number', text)).toBe(true);
      expect(await hasTerm(plain, 'part.number', text)).toBe(false);
    }
    expect(await hasTerm(parts, 'code', 'x1')).toBe(false);
    await service.updateIndex(tenant.context(), parts, { matchFields: ['code'] });
    expect(await hasTerm(parts, 'code', 'x1')).toBe(false);
    await service.updateDocument(tenant.context(), parts, 'a', { expiresAtMs: null });
    expect(await hasTerm(parts, 'code', 'x1')).toBe(true);
    await service.updateDocument(tenant.context(), parts, 'a', { metadataMerge: '{"code":"X-2"}' });
    expect(await hasTerm(parts, 'code', 'x2')).toBe(true);
    await put(parts, 'b', { code: 'Y', part: { number: 'Z9' } });
    expect([await hasTerm(parts, 'code', 'Y'), await hasTerm(parts, 'part.number', 'Z9')]).toEqual([
      true,
      false,
    ]);
  });
});

describe('upserting', () => {
  it('is refused before inference when the stored-document allowance cannot hold it', async () => {
    const tenant = await stage.newTenant({ documents: 2 });
    const indexId = await tenant.createIndex();
    await tenant.upsert(indexId, { a: 'one' });
    const inferred = stage.encoder.inferred.length;
    const refused = await rejection(tenant.upsert(indexId, { b: 'two', c: 'three' }));
    expect(refused).toMatchObject({
      code: 'validation_error',
      httpStatus: 422,
      issues: [{ path: 'documents' }],
    });
    expect(stage.encoder.inferred).toHaveLength(inferred);
    // Neither a replacement nor a failed document needs more of the allowance.
    expect((await tenant.upsert(indexId, { a: 'again', b: 'two', c: ' ' })).upsertedDocuments).toBe(2);
    const { usage, remaining } = await stage.service.usage(tenant.context());
    expect([usage.documents, remaining.documents, usage.inputTokens]).toEqual([2, 0, 3n]);
  });

  it('past its deadline is 503 with Retry-After, and nothing is stored or charged', async () => {
    const tenant = await stage.newTenant();
    const indexId = await tenant.createIndex();
    await tenant.upsert(indexId, { kept: 'old words' });
    stage.encoder.beforeDocument = async () => void (stage.clock.ms += 1000);
    try {
      const late = await rejection(
        stage.service.upsertDocuments(
          tenant.context({ deadlineMs: stage.clock.ms + 1500 }),
          indexId,
          documentsOf({ kept: 'new words', b: 'b' }),
        ),
      );
      expect(late).toMatchObject({ code: 'service_unavailable', retryAfterSeconds: 1 });
    } finally {
      stage.encoder.beforeDocument = async () => undefined;
    }
    const { results } = await tenant.search(indexId, 'words');
    expect(results.map(({ docId }) => docId)).toEqual(['kept']);
    const { usage } = await stage.service.usage(tenant.context());
    expect(usage).toMatchObject({ inputTokens: 3n, documentUpserts: 1, documents: 1 });
  });

  it('stops when the client goes away: nothing stored, what was run is charged once, the rest of the allowance free again', async () => {
    const tenant = await stage.newTenant({ inputTokens: 7n });
    const indexId = await tenant.createIndex();
    const leaving = new AbortController();
    const gone = new Error('the client has gone');
    stage.encoder.beforeDocument = async (text) => {
      if (text === 'b') leaving.abort(gone);
    };
    const context = tenant.context({ signal: leaving.signal });
    const left = await rejection(
      stage.service.upsertDocuments(context, indexId, documentsOf({ b: 'b', c: 'c d e' })),
    );
    stage.encoder.beforeDocument = async () => undefined;
    expect(left).toBe(gone);
    for (let times = 0; times < 2; times++) await stage.service.countLeft(context);
    const { usage } = await stage.service.usage(tenant.context());
    expect(usage).toMatchObject({ inputTokens: 3n, documents: 0, requests: 1 });
    expect(context.spent).toEqual({ inputTokens: 3, documents: 0, isCharged: true });
    expect((await tenant.upsert(indexId, { c: 'c d e f' })).upsertedDocuments).toBe(1);
  });

  it('into an index that is deleted meanwhile is 404, and leaves no file', async () => {
    const tenant = await stage.newTenant();
    const indexId = await tenant.createIndex();
    const reached = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    stage.encoder.beforeDocument = async () => {
      reached.resolve();
      await goOn.promise;
    };
    const upserting = rejection(tenant.upsert(indexId, { a: 'words' }));
    await reached.promise;
    // Deleting does not wait for the upsert.
    expect(await stage.service.deleteIndex(tenant.context(), indexId)).toBe(true);
    goOn.resolve();
    stage.encoder.beforeDocument = async () => undefined;
    expect(await upserting).toMatchObject({ code: 'not_found' });
    await expect.poll(() => readdir(path.join(stage.directory, 'segments'))).not.toContain(indexId);
    expect(await rejection(tenant.upsert(indexId, { a: 'words' }))).toMatchObject({ code: 'not_found' });
  });

  it('needs the model version of the index', async () => {
    const tenant = await stage.newTenant();
    const indexId = await tenant.createIndex();
    const { served } = stage.encoder;
    stage.encoder.served = served.map((model) => ({ ...model, version: '2' }));
    try {
      const refused = await rejection(tenant.upsert(indexId, { a: 'words' }));
      expect(refused).toMatchObject({ code: 'service_unavailable' });
      expect(await rejection(tenant.search(indexId, 'words'))).toMatchObject({ code: 'service_unavailable' });
      // Requests that need no model work.
      expect(await stage.service.deleteDocument(tenant.context(), indexId, 'a')).toBe(false);
    } finally {
      stage.encoder.served = served;
    }
  });
});

describe('merging metadata', () => {
  it('changes the fields that it names, filters follow, and the text is not encoded again', async () => {
    const tenant = await stage.newTenant();
    const indexId = await tenant.createIndex();
    const stored = '{"kind":"insect","n":12345678901234567890,"price":1.10}';
    await stage.service.upsertDocuments(tenant.context(), indexId, documentsOf({ a: 'word' }, stored));
    const inferred = stage.encoder.inferred.length;
    const merge = (metadataMerge: string) =>
      stage.service.updateDocument(tenant.context(), indexId, 'a', { metadataMerge });
    const metadata = '{"n":12345678901234567890,"price":1.10,"checked":true}';
    expect(await merge('{"checked":true,"kind":null}')).toMatchObject({ docId: 'a', metadata });
    expect(await stage.service.getDocument(tenant.context(), indexId, 'a')).toMatchObject({ metadata });
    expect(stage.encoder.inferred).toHaveLength(inferred);
    const found = async (filter: string) => (await tenant.search(indexId, 'word', { filter })).results.length;
    expect(await found('{"checked":true,"n":12345678901234567890}')).toBe(1);
    expect(await found('{"kind":"insect"}')).toBe(0);
    // The sum is what counts: 58 bytes are there already.
    const large = await rejection(merge(`{"large":"${'x'.repeat(16_320)}"}`));
    expect(large).toMatchObject({
      code: 'validation_error',
      issues: [{ path: 'metadata_merge', code: 'too_big' }],
    });
    expect(await stage.service.getDocument(tenant.context(), indexId, 'a')).toMatchObject({ metadata });
  });

  it('counts every one of several merges at once', async () => {
    const tenant = await stage.newTenant();
    const indexId = await tenant.createIndex();
    await tenant.upsert(indexId, { a: 'word' });
    const names = Array.from({ length: 12 }, (_, at) => `field${at}`);
    await Promise.all(
      names.map((name) =>
        stage.service.updateDocument(tenant.context(), indexId, 'a', { metadataMerge: `{"${name}":1}` }),
      ),
    );
    const { metadata } = await stage.service.getDocument(tenant.context(), indexId, 'a');
    expect(Object.keys(JSON.parse(metadata) as object).toSorted()).toEqual(names.toSorted());
  });
});
