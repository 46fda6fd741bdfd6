/**
 * A process that commits to a catalog until it is done, fails or is killed. Arguments: directory, tenant id, number of commits,
 * bytes of metadata. It writes one line per event to standard output, synchronously, so that a kill loses none:
 *
 *     index ID | start N | ack N GENERATION | recorded | failed N CODE | done
 *
 * Commit n writes the documents `n a`, `n b` and `shared`, and charges 10 tokens. A usage event of 1 token follows each
 * commit.
 */
import { writeSync } from 'node:fs';
import { ServiceError } from '../../../src/errors.ts';
import { openCatalog } from '../../../src/catalog/sqlite/open-catalog.ts';
import { DocumentWriter, usageOf } from '../../support/stages/catalog-fixture.ts';

const [directory = '', tenantId = '', commits = '0', fillerBytes = '0'] = process.argv.slice(2);
const inFlightMax = 6;
const filler = 'x'.repeat(Number(fillerBytes));

const catalog = await openCatalog({ directory });
const writer = await DocumentWriter.start(catalog, tenantId);
say(`index ${writer.index.id}`);
let next = 0;
await Promise.all(Array.from({ length: inFlightMax }, lane));
await catalog.close();
say('done');

async function lane(): Promise<void> {
  while (next < Number(commits)) {
    const number = next++;
    try {
      await commit(number);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      say(`failed ${number} ${error.code}`);
    }
  }
}

async function commit(number: number): Promise<void> {
  const metadata = JSON.stringify({ number, filler });
  const documents = await writer.versions([`${number} a`, `${number} b`, 'shared'], metadata);
  say(`start ${number}`);
  const usage = usageOf(tenantId, { requests: 1, inputTokens: 10n, documentUpserts: 3 });
  const result = await writer.commit(documents, { usage });
  if (result.outcome !== 'committed') throw new Error(result.outcome);
  say(`ack ${number} ${result.generation}`);
  await catalog.recordUsage(usageOf(tenantId, { requests: 1, searches: 1, inputTokens: 1n }));
  say('recorded');
}

function say(line: string): void {
  let left = Buffer.from(`${line}\n`);
  while (left.length > 0) {
    try {
      left = left.subarray(writeSync(1, left));
    } catch (error) {
      // The reader is slower.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
  }
}
