/**
 * The service on a catalog that is damaged: a search answers as before or is refused, and an index whose damage is
 * certain goes to `error`. `TEST_SEED` repeats a run.
 */
import { cp, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { rounds } from '../../rounds.ts';
import type { RequestContext } from '../../../src/service/contract.ts';
import { ServiceError } from '../../../src/errors.ts';
import { announceRandom } from '../../support/running/random.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { openServiceStage, rejection, type ServiceStage } from '../../support/stages/service-stage.ts';

const flips = rounds({ short: 20, nightly: 200 });
const words = ['red', 'green', 'blue', 'yellow'];

let directory: string;
let newContext: () => RequestContext;
let indexIds: readonly string[];
let intact: readonly unknown[];
beforeAll(async () => {
  const stage = await openServiceStage(await newDirectory());
  ({ directory } = stage);
  const tenant = await stage.newTenant();
  newContext = () => tenant.context();
  indexIds = [await tenant.createIndex(), await tenant.createIndex()];
  for (const indexId of indexIds) {
    for (let group = 0; group < 10; group += 1) {
      await stage.service.upsertDocuments(
        tenant.context(),
        indexId,
        Array.from({ length: 10 }, (_document, place) => ({
          docId: `${group} ${place}`,
          text: `${words[place % 4]} ${words[group % 4]}`,
          metadata: JSON.stringify({ group, where: indexId, filler: 'x'.repeat(place * 40) }),
        })),
      );
    }
    for (let group = 0; group < 5; group += 1) {
      await stage.service.deleteDocument(tenant.context(), indexId, `${group} 1`);
    }
  }
  intact = (await answersOf(stage)).map(({ answer }) => answer);
  await stage.service.drain();
});

/** A copy of the data directory, with its catalog changed. */
async function damagedCopy(change: (catalog: Buffer) => void): Promise<string> {
  const copy = path.join(await newDirectory(), 'data');
  await cp(directory, copy, { recursive: true });
  const file = path.join(copy, 'catalog.db');
  const bytes = await readFile(file);
  change(bytes);
  await writeFile(file, bytes);
  return copy;
}

async function answersOf(stage: ServiceStage): Promise<readonly { answer?: unknown; error?: unknown }[]> {
  const { service } = stage;
  const questions: (() => Promise<unknown>)[] = [
    () => service.listIndexes(newContext()),
    ...indexIds.flatMap((indexId) =>
      words.map(
        (query) => async () =>
          (await service.search(newContext(), indexId, { query, topK: 100, returnComponents: false }))
            .results,
      ),
    ),
  ];
  const answers = [];
  for (const question of questions) {
    answers.push(
      await question().then(
        (answer) => ({ answer }),
        (error: unknown) => ({ error }),
      ),
    );
  }
  return answers;
}

const isServerError = (error: unknown): boolean => error instanceof ServiceError && error.httpStatus >= 500;

describe('on a damaged catalog', () => {
  it(
    'a search answers as before or is refused, after any flip of one bit',
    async () => {
      const random = announceRandom('flipped bits');
      for (let flip = 0; flip < flips; flip += 1) {
        const copy = await damagedCopy((bytes) => {
          bytes[random.integer(0, bytes.length - 1)]! ^= 1 << random.integer(0, 7);
        });
        const opened = await openServiceStage(copy).catch((error: unknown) => ({ error }));
        if ('error' in opened) {
          expect(opened.error).toSatisfy(isServerError);
          continue;
        }
        for (const [place, { answer, error }] of (await answersOf(opened)).entries()) {
          if (error === undefined) expect(answer).toEqual(intact[place]);
          else expect(error).toSatisfy(isServerError);
        }
        await opened.service.drain();
      }
    },
    10_000 + flips * 5_000,
  );

  it('an index goes to error when its damage is certain, and the others go on', async () => {
    const [hurt = '', whole = ''] = indexIds;
    const copy = await damagedCopy((bytes) => {
      // This changes the metadata of one of its documents.
      bytes[bytes.indexOf(`"where":"${hurt}"`)]! ^= 1;
    });
    const stage = await openServiceStage(copy);
    const search = (indexId: string): Promise<unknown> =>
      stage.service.search(newContext(), indexId, { query: 'red', topK: 100, returnComponents: false });
    expect(await rejection(search(hurt))).toMatchObject({
      code: 'service_unavailable',
      retryAfterSeconds: expect.any(Number),
    });
    const { id: tenantId } = newContext().tenant;
    await vi.waitFor(async () => {
      // A busy machine may have refused the search above before it met the damage.
      await rejection(search(hurt));
      expect(await stage.catalog.getIndex(tenantId, hurt)).toMatchObject({ status: 'error' });
    }, 120_000);
    expect(await stage.catalog.getIndex(tenantId, whole)).toMatchObject({ status: 'ready' });
    await expect(search(whole)).resolves.toMatchObject({ results: expect.any(Array) });
    await stage.service.drain();
  });
});

it('a document that the catalog does not hold makes its search fail', async () => {
  const stage = await openServiceStage(await newDirectory());
  const tenant = await stage.newTenant();
  const indexId = await tenant.createIndex();
  await tenant.upsert(indexId, { a: 'red', b: 'red green' });
  const resolveVersions = stage.catalog.resolveVersions.bind(stage.catalog);
  stage.catalog.resolveVersions = async (...of) => {
    const found = await resolveVersions(...of);
    return new Map([...found].slice(1));
  };
  expect(await rejection(tenant.search(indexId, 'red'))).toMatchObject({ code: 'service_unavailable' });
  await stage.service.drain();
});
