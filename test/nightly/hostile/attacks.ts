/** Requests that hostile or careless clients can send within the limits of their tenants. */
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { cutToBytes, packageTexts } from '../../../bench/lib/texts.ts';
import { generateApiKey } from '../../../src/catalog/api-key.ts';
import { bodyBytesMax, documentsMax, queriesMax, textBytesMax } from '../../../src/http/limits.ts';
import { metadataBytesMax } from '../../../src/service/contract.ts';
import { rounds } from '../../rounds.ts';
import { openRaw, type RawConnection } from '../../support/network/raw-http.ts';

export interface Attacker {
  readonly url: string;
  readonly apiKey: string;
  readonly indexId: string;
  /**
   * Sends a body as it is, or a GET without one. Gives the status, and 0 when there is no answer. The caller leaves after
   * `leaveMs` without one.
   */
  send(path: string, body?: string | Buffer, leaveMs?: number): Promise<number>;
  /** Does the same, and gives the text of the answer. */
  ask(path: string, body?: string | Buffer): Promise<string>;
}

export interface Attack {
  readonly name: string;
  /** How many tenants attack together: 1 if absent. */
  readonly tenants?: number;
  /** Stores what the attack needs, before the clock starts. */
  prepare?(attacker: Attacker): Promise<void>;
  /** Resolves with the statuses of the answers. `until` aborts when the time is up. */
  run(attackers: readonly [Attacker, ...Attacker[]], until: AbortSignal): Promise<readonly number[]>;
}

/** Two requests at a time, as the default limits allow. */
const lanes = [0, 1];
/** A caller who leaves early leaves after so long. */
const leaveMs = 1500;
const question = 'how is the event loop kept free';
const fullDocuments = rounds({ short: 2, nightly: documentsMax });
const tiedDocuments = rounds({ short: 200, nightly: 6000 });
const wideDocuments = rounds({ short: 400, nightly: 20_000 });
const wideBytes = 15_000;
const chunkedDocuments = rounds({ short: 1, nightly: 12 });

const documentsOf = ({ indexId }: Attacker): string => `/v1/indexes/${indexId}/documents`;
const searchOf = ({ indexId }: Attacker): string => `/v1/indexes/${indexId}/search`;
const queryOf = ({ indexId }: Attacker): string => `/v1/indexes/${indexId}/query`;
const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, n) => n);
const documentsWith = (texts: readonly string[], more: object = {}): readonly object[] =>
  texts.map((text, n) => ({ doc_id: `hostile-${n}`, text, ...more }));

async function inTurn<T>(works: readonly (() => Promise<T>)[]): Promise<readonly T[]> {
  const results: T[] = [];
  for (const work of works) results.push(await work());
  return results;
}

/** Bodies are made once, because the attacker shares the cores of those that it attacks. */
function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

/** Documents of real text. */
function realDocuments(count: number, bytes: number): readonly object[] {
  const text = packageTexts(400).join(' ').repeat(2);
  return documentsWith(numbers(count).map((n) => cutToBytes(text.slice(n * 1000), bytes)));
}

/** 50 documents of 100 KiB of real text, as an upsert and as a score. */
const largest = once(() => {
  const documents = realDocuments(fullDocuments, textBytesMax);
  return {
    upsert: Buffer.from(JSON.stringify({ documents })),
    score: Buffer.from(JSON.stringify({ query: question, documents })),
  };
});

const largestUpsert: Attack = {
  name: 'largest upsert',
  run: async ([attacker]) => [await attacker.send(documentsOf(attacker), largest().upsert)],
};

/** 50 documents of 100 KB of combining marks out of canonical order. */
const markedUpsert = once(() => {
  const text = `a${'\u{315}'.repeat(25_000)}${'\u{300}'.repeat(25_000)}`;
  return Buffer.from(JSON.stringify({ documents: documentsWith(numbers(fullDocuments).map(() => text)) }));
});

const marks: Attack = {
  name: 'marks',
  run: async ([attacker]) => [await attacker.send(documentsOf(attacker), markedUpsert())],
};

/** Each is sent once, by a tenant whose limits do not bind. */
export const singleAttacks: readonly Attack[] = [
  largestUpsert,
  marks,
  {
    // A body of 5 MiB of opening brackets, to each route.
    name: 'brackets',
    run: async ([attacker]) => {
      const body = '['.repeat(bodyBytesMax);
      const paths = [documentsOf(attacker), searchOf(attacker), '/v1/score', '/v1/indexes'];
      return inTurn(paths.map((path) => () => attacker.send(path, body)));
    },
  },
  {
    // The first of two filters holds 2.4 million brackets, the second one a long integer.
    name: 'repeated key',
    run: async ([attacker]) => {
      const nested = `${'['.repeat(1_200_000)}${']'.repeat(1_200_000)}`;
      const body = `{"query":"x","filter":{"a":${nested}},"filter":{"a":12345678901234567890}}`;
      return [await attacker.send(searchOf(attacker), body)];
    },
  },
  {
    // 5 MiB of unknown properties.
    name: 'many members',
    run: async ([attacker]) => {
      const members = numbers(380_000).map((n) => `"p${n}":1`);
      return [await attacker.send(documentsOf(attacker), `{${members.join(',')}}`)];
    },
  },
  {
    // 50 documents with 16 KiB of 1e308 as metadata.
    name: 'large numbers',
    run: async ([attacker]) => {
      const values = Array(Math.floor((metadataBytesMax - 20) / 6)).fill('1e308');
      const documents = numbers(documentsMax).map(
        (n) => `{"doc_id":"n${n}","text":"x","metadata":{"n":[${values.join(',')}]}}`,
      );
      return [await attacker.send(documentsOf(attacker), `{"documents":[${documents.join(',')}]}`)];
    },
  },
  {
    // The list of 100 indexes with the largest metadata_schema that is accepted.
    name: 'schemas',
    prepare: async (attacker) => {
      // 700 KB of digits are one number of a few bytes to a parser.
      const huge = `{"n":[1.${'0'.repeat(700_000)}]}`;
      const plain = JSON.stringify({ n: 'x'.repeat(metadataBytesMax - 20) });
      for (const n of numbers(rounds({ short: 5, nightly: 100 }))) {
        const create = (schema: string) =>
          attacker.send('/v1/indexes', `{"name":"schema-${n}","metadata_schema":${schema}}`);
        if ((await create(huge)) !== 201) await create(plain);
      }
    },
    run: async ([attacker]) => [await attacker.send('/v1/indexes')],
  },
  {
    // Four searches at once of 512 tokens with components and top_k 1. All documents tie.
    name: 'ties',
    prepare: (attacker) => store(attacker, tiedDocuments, {}),
    run: async ([attacker]) => {
      const query = 'whale '.repeat(512).trim();
      const body = JSON.stringify({ query, top_k: 1, return_components: true, candidate_k: 500 });
      return Promise.all(numbers(4).map(() => attacker.send(searchOf(attacker), body)));
    },
  },
  {
    // 3,000 requests with well-formed keys that do not exist, 8 at a time.
    name: 'unknown keys',
    run: async ([{ url }]) => {
      const one = async (): Promise<number> => {
        const headers = { authorization: `Bearer ${generateApiKey().apiKey}` };
        const response = await fetch(new URL('/v1/usage', url), { headers });
        await response.arrayBuffer();
        return response.status;
      };
      const lane = numbers(rounds({ short: 20, nightly: 375 })).map(() => one);
      return (await Promise.all(numbers(8).map(() => inTurn(lane)))).flat();
    },
  },
  {
    // 40 connections send 2,000 index lists each in one go, and read no answer for 5 s.
    name: 'never read',
    run: async ([{ url, apiKey }]) => {
      const { hostname, port } = new URL(url);
      const one = `GET /v1/indexes HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${apiKey}\r\n\r\n`;
      const sockets = numbers(40).map(() => {
        const socket: Socket = connect(Number(port), hostname);
        socket.on('error', () => undefined);
        socket.pause();
        socket.write(one.repeat(2000));
        return socket;
      });
      await pause(5000);
      for (const socket of sockets) socket.destroy();
      return [];
    },
  },
  {
    // 30 upserts of 5 MiB at once. Each is refused for a wrong document at its end.
    name: 'large bodies',
    run: async ([attacker]) => {
      const texts = numbers(documentsMax - 1).map(() => 'x '.repeat(textBytesMax / 2));
      const body = Buffer.from(JSON.stringify({ documents: [...documentsWith(texts), { doc_id: '' }] }));
      return Promise.all(numbers(30).map(() => attacker.send(documentsOf(attacker), body)));
    },
  },
];

let fields = 0;

/** Each is sent again and again, by tenants with the default limits. */
export const repeatedAttacks: readonly Attack[] = [
  largestUpsert,
  {
    // An upsert and a score at once: all that the default limits allow.
    name: 'largest pair',
    run: ([attacker]) =>
      Promise.all([
        attacker.send(documentsOf(attacker), largest().upsert),
        attacker.send('/v1/score', largest().score),
      ]),
  },
  marks,
  {
    // Two requests at once of 32 searches of 2 KB each, grouped by document, over documents with some 2,500 chunks each.
    name: 'grouped searches',
    prepare: async (attacker) => {
      const chunking = { max_tokens: 8, overlap_tokens: 0, minimum_chunk_tokens: 1 };
      const created = await attacker.ask('/v1/indexes', JSON.stringify({ name: 'few', chunking }));
      const { id } = JSON.parse(created) as { readonly id: string };
      for (const document of realDocuments(chunkedDocuments, textBytesMax))
        await attacker.send(`/v1/indexes/${id}/documents`, JSON.stringify({ documents: [document] }));
    },
    run: async ([attacker]) => {
      const query = packageTexts(8).join(' ').slice(0, 2000);
      const one = { query, top_k: 15, candidate_k: 500, group_by_document: true };
      const body = JSON.stringify({ queries: numbers(queriesMax).map(() => one) });
      const indexId = await indexNamed(attacker, 'few');
      return Promise.all(lanes.map(() => attacker.send(queryOf({ ...attacker, indexId }), body)));
    },
  },
  {
    // Two searches at once by a range of a field that was not used before. The caller leaves.
    name: 'new fields',
    prepare: storeWideMetadata,
    run: async ([attacker]) =>
      Promise.all(
        lanes.map(() => {
          const query = { query: 'whale', where: { [`field-${(fields += 1)}`]: { gt: 1 } } };
          return attacker.send(queryOf(attacker), JSON.stringify({ queries: [query] }), leaveMs);
        }),
      ),
  },
  {
    // A count and a list of documents at once.
    name: 'counts and lists',
    prepare: storeWideMetadata,
    run: async ([attacker]) =>
      Promise.all([
        attacker.send(`/v1/indexes/${attacker.indexId}/count`),
        attacker.send(`${documentsOf(attacker)}?limit=1000`),
      ]),
  },
  {
    // Two scores at once of 50 documents of 3 KB. The caller leaves.
    name: 'abandoned scores',
    run: async ([attacker]) => {
      const body = JSON.stringify({ query: question, documents: realDocuments(documentsMax, 3000) });
      return Promise.all(lanes.map(() => attacker.send('/v1/score', body, leaveMs)));
    },
  },
  {
    // Four tenants with two scores each, whose 5 MiB come in chunks of one byte (RFC 9112 section 7.1).
    name: 'tiny chunks',
    tenants: 4,
    run: (attackers, until) => {
      const chunksAtOnce = 10_000;
      const chunks = '1\r\n \r\n'.repeat(chunksAtOnce);
      return scoresByHand(attackers, until, 'transfer-encoding: chunked', async (connection) => {
        for (const _ of numbers(bodyBytesMax / chunksAtOnce)) {
          if (connection.answered()) break;
          await connection.flush(chunks);
        }
        connection.write('0\r\n\r\n');
      });
    },
  },
  {
    // Four tenants with two scores each. They announce 5 MiB, send 70 KB at once and then a byte every 5 s.
    name: 'slow bodies',
    tenants: 4,
    run: (attackers, until) =>
      scoresByHand(attackers, until, `content-length: ${bodyBytesMax}`, async (connection, answer) => {
        connection.write(' '.repeat(70_000));
        while (!connection.answered()) {
          await Promise.race([pause(5000), answer]);
          connection.write(' ');
        }
      }),
  },
];

/** Two scores of each attacker at once, whose bodies `write` sends. Gives their statuses; 0 without an answer in time. */
function scoresByHand(
  attackers: readonly Attacker[],
  until: AbortSignal,
  framing: string,
  write: (connection: RawConnection, answer: Promise<number>) => Promise<void>,
): Promise<readonly number[]> {
  const send = async ({ url, apiKey }: Attacker): Promise<number> => {
    const connection = await openRaw(url);
    until.addEventListener('abort', () => connection.cut());
    const head = `POST /v1/score HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${apiKey}\r\ncontent-type: application/json`;
    connection.write(`${head}\r\n${framing}\r\n\r\n`);
    const answer = connection.reply().then(
      ({ status }) => status,
      () => 0,
    );
    await write(connection, answer);
    return answer;
  };
  return Promise.all(attackers.flatMap((attacker) => lanes.map(() => send(attacker))));
}

function storeWideMetadata(attacker: Attacker): Promise<void> {
  return store(attacker, wideDocuments, { metadata: { filler: 'x'.repeat(wideBytes) } });
}

/** Stores documents of one word. */
async function store(attacker: Attacker, count: number, more: object): Promise<void> {
  for (let first = 0; first < count; first += documentsMax) {
    const documents = numbers(documentsMax).map((n) => ({ doc_id: `${first + n}`, text: 'whale', ...more }));
    await attacker.send(documentsOf(attacker), JSON.stringify({ documents }));
  }
}

async function indexNamed(attacker: Attacker, name: string): Promise<string> {
  const { data } = JSON.parse(await attacker.ask('/v1/indexes')) as {
    readonly data: readonly { readonly id: string; readonly name: string }[];
  };
  const found = data.find((index) => index.name === name);
  if (found === undefined) throw new Error(`there is no index ${name}`);
  return found.id;
}
