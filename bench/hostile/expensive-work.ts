/** Few requests that cause much work, by one tenant that has no more than the default limits. */
import { cutToBytes, packageTexts } from '../lib/texts.ts';
import { documentsOf, inTurn, numbers, type Attack, type Attacker } from './attack.ts';

const documentsMax = 50;
const searchesMax = 32;
/** Two requests at a time, as the default limits allow. */
const lanes = [0, 1];

const fewDocuments = { count: 12, bytes: 100 << 10, chunkTokens: 8 };
const wideMetadata = { documents: 20_000, bytes: 15_000 };
const leaveMs = 1500;

let fields = 0;

export const expensiveWork: readonly Attack[] = [
  {
    name: 'grouped searches',
    what: 'two requests at once of 32 searches of 2 KB each, grouped by document, of an index of 12 documents with some 30,000 chunks',
    tenants: 1,
    prepare: async (attackers) => {
      const [attacker] = attackers;
      const chunking = { max_tokens: fewDocuments.chunkTokens, overlap_tokens: 0, minimum_chunk_tokens: 1 };
      const created = await attacker.ask('/v1/indexes', JSON.stringify({ name: 'few', chunking }));
      const { id } = JSON.parse(created) as { readonly id: string };
      const text = packageTexts(400).join(' ').repeat(2);
      for (const n of numbers(fewDocuments.count)) {
        const document = { doc_id: `few-${n}`, text: cutToBytes(text.slice(n * 5000), fewDocuments.bytes) };
        const body = JSON.stringify({ documents: [document] });
        await attacker.send(`/v1/indexes/${id}/documents`, body);
      }
    },
    run: async ([attacker]) => {
      const query = packageTexts(8).join(' ').slice(0, 2000);
      const one = { query, top_k: 15, candidate_k: 500, group_by_document: true };
      const body = JSON.stringify({ queries: numbers(searchesMax).map(() => one) });
      const path = `/v1/indexes/${await indexNamed(attacker, 'few')}/query`;
      return Promise.all(lanes.map(() => attacker.send(path, body)));
    },
  },
  {
    name: 'new fields',
    what: 'two searches at once by a range of a field that was not used before, over 20,000 documents with 15 KB of metadata; the caller leaves after 1.5 s',
    tenants: 1,
    prepare: storeWideMetadata,
    run: async ([attacker]) =>
      Promise.all(
        lanes.map(() => {
          const query = { query: 'whale', where: { [`field-${(fields += 1)}`]: { gt: 1 } } };
          const body = JSON.stringify({ queries: [query] });
          return attacker.send(`/v1/indexes/${attacker.indexId}/query`, body, leaveMs);
        }),
      ),
  },
  {
    name: 'counts and lists',
    what: 'a count and a list of documents at once, of 20,000 documents with 15 KB of metadata',
    tenants: 1,
    prepare: storeWideMetadata,
    run: async ([attacker]) =>
      Promise.all([
        attacker.send(`${documentsOf(attacker)}/count`),
        attacker.send(`${documentsOf(attacker)}?limit=1000`),
      ]),
  },
  {
    name: 'abandoned scores',
    what: 'two scores at once of 50 documents of 3 KB, whose caller leaves after 1.5 s',
    tenants: 1,
    run: async ([attacker]) => {
      const text = packageTexts(200).join(' ').repeat(2);
      const documents = numbers(documentsMax).map((n) => ({
        doc_id: `s${n}`,
        text: cutToBytes(text.slice(n * 500), 3_000),
      }));
      const body = JSON.stringify({ query: 'how is the event loop kept free', documents });
      return Promise.all(lanes.map(() => attacker.send('/v1/score', body, leaveMs)));
    },
  },
];

async function storeWideMetadata(attackers: readonly [Attacker, ...Attacker[]]): Promise<void> {
  const [attacker] = attackers;
  const filler = 'x'.repeat(wideMetadata.bytes);
  await inTurn(
    numbers(wideMetadata.documents / documentsMax).map((batch) => () => {
      const documents = numbers(documentsMax).map((n) => ({
        doc_id: `wide-${batch * documentsMax + n}`,
        text: 'whale',
        metadata: { filler },
      }));
      return attacker.send(documentsOf(attacker), JSON.stringify({ documents }));
    }),
  );
}

async function indexNamed(attacker: Attacker, name: string): Promise<string> {
  const { data } = JSON.parse(await attacker.ask('/v1/indexes')) as {
    readonly data: readonly { readonly id: string; readonly name: string }[];
  };
  const found = data.find((index) => index.name === name);
  if (found === undefined) throw new Error(`there is no index ${name}`);
  return found.id;
}
