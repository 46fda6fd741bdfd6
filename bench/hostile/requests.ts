/** The most expensive single requests known, within the limits of one tenant. */
import { connect, type Socket } from 'node:net';
import { generateApiKey } from '../../src/catalog/api-key.ts';
import { cutToBytes, packageTexts } from '../lib/texts.ts';
import { bodyBytesMax, documentsOf, inTurn, numbers, searchOf, type Attack } from './attack.ts';

const textBytesMax = 100 << 10;
const metadataBytesMax = 16 << 10;
const documentsMax = 50;

// Made once, for the attacker shares the cores of those that it attacks.
const largestUpsert = once(() => {
  const text = packageTexts(400).join(' ').repeat(2);
  const documents = documentsWith(
    numbers(documentsMax).map((n) => cutToBytes(text.slice(n * 1000), textBytesMax)),
  );
  const query = 'how is the event loop kept free';
  return {
    upsert: Buffer.from(JSON.stringify({ documents })),
    score: Buffer.from(JSON.stringify({ query, documents })),
  };
});
const marks = once(() => {
  const text = `a${'\u{315}'.repeat(25_000)}${'\u{300}'.repeat(25_000)}`;
  return Buffer.from(JSON.stringify({ documents: documentsWith(numbers(documentsMax).map(() => text)) }));
});

export const requests: readonly Attack[] = [
  {
    name: 'largest upsert',
    what: 'an upsert of 50 documents of 100 KiB of real text, for comparison',
    tenants: 1,
    run: async ([attacker]) => [await attacker.send(documentsOf(attacker), largestUpsert().upsert)],
  },
  {
    name: 'largest pair',
    what: 'an upsert and a score at once, each of 50 documents of 100 KiB of real text: all that the default limits allow',
    tenants: 1,
    run: ([attacker]) =>
      Promise.all([
        attacker.send(documentsOf(attacker), largestUpsert().upsert),
        attacker.send('/v1/score', largestUpsert().score),
      ]),
  },
  {
    name: 'marks',
    what: 'an upsert of 50 documents of 100 KB of combining marks out of canonical order',
    tenants: 1,
    run: async ([attacker]) => [await attacker.send(documentsOf(attacker), marks())],
  },
  {
    name: 'brackets',
    what: 'a body of 5 MiB of opening brackets, to each route',
    tenants: 1,
    run: async ([attacker]) => {
      const body = '['.repeat(bodyBytesMax);
      const paths = [documentsOf(attacker), searchOf(attacker), '/v1/score', '/v1/indexes'];
      return inTurn(paths.map((path) => () => attacker.send(path, body)));
    },
  },
  {
    name: 'repeated key',
    what: 'a search whose repeated filter holds 2.5 million brackets and a long integer',
    tenants: 1,
    run: async ([attacker]) => {
      const half = 1_200_000;
      const nested = `${'['.repeat(half)}${']'.repeat(half)}`;
      const body = `{"query":"x","filter":{"a":${nested}},"filter":{"a":12345678901234567890}}`;
      return [await attacker.send(searchOf(attacker), body)];
    },
  },
  {
    name: 'many members',
    what: 'an upsert with 5 MiB of unknown properties',
    tenants: 1,
    run: async ([attacker]) => {
      const members = numbers(380_000).map((n) => `"p${n}":1`);
      return [await attacker.send(documentsOf(attacker), `{${members.join(',')}}`)];
    },
  },
  {
    name: 'large numbers',
    what: 'an upsert of 50 documents with 16 KiB of 1e308 as metadata',
    tenants: 1,
    run: async ([attacker]) => {
      const values = Array(Math.floor((metadataBytesMax - 20) / 6)).fill('1e308');
      const documents = numbers(documentsMax).map(
        (n) => `{"doc_id":"n${n}","text":"x","metadata":{"n":[${values.join(',')}]}}`,
      );
      return [await attacker.send(documentsOf(attacker), `{"documents":[${documents.join(',')}]}`)];
    },
  },
  {
    name: 'schemas',
    what: 'the list of 100 indexes with the largest metadata_schema that is accepted',
    prepare: async ([attacker]) => {
      // 700 KB of digits are one number of a few bytes to a parser.
      const huge = `{"n":[1.${'0'.repeat(700_000)}]}`;
      const plain = JSON.stringify({ n: 'x'.repeat(metadataBytesMax - 20) });
      for (const n of numbers(100)) {
        const create = (schema: string) =>
          attacker.send('/v1/indexes', `{"name":"schema-${n}","metadata_schema":${schema}}`);
        if ((await create(huge)) !== 201) await create(plain);
      }
    },
    tenants: 1,
    run: async ([attacker]) => [await attacker.send('/v1/indexes')],
  },
  {
    name: 'ties',
    what: 'four searches at once of 512 tokens with components and top_k 1, all of 6,000 documents tied',
    prepare: async ([attacker]) => {
      for (const batch of numbers(6000 / documentsMax)) {
        const documents = numbers(documentsMax).map((n) => ({
          doc_id: `tie-${batch * documentsMax + n}`,
          text: 'whale',
        }));
        await attacker.send(documentsOf(attacker), JSON.stringify({ documents }));
      }
    },
    tenants: 1,
    run: async ([attacker]) => {
      const query = 'whale '.repeat(512).trim();
      const body = JSON.stringify({ query, top_k: 1, return_components: true, candidate_k: 500 });
      return Promise.all(numbers(4).map(() => attacker.send(searchOf(attacker), body)));
    },
  },
  {
    name: 'unknown keys',
    what: '3,000 requests with well-formed keys that do not exist, 8 at a time',
    tenants: 1,
    run: async ([{ url }]) => {
      const one = async (): Promise<number> => {
        const headers = { authorization: `Bearer ${generateApiKey().apiKey}` };
        const response = await fetch(new URL('/v1/usage', url), { headers });
        await response.arrayBuffer();
        return response.status;
      };
      const lane = numbers(375).map(() => one);
      return (await Promise.all(numbers(8).map(() => inTurn(lane)))).flat();
    },
  },
  {
    name: 'never read',
    what: '40 connections that send 2,000 index lists each in one go and never read an answer, for 5 s',
    tenants: 1,
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
      await new Promise((resolve) => setTimeout(resolve, 5000));
      for (const socket of sockets) socket.destroy();
      return [];
    },
  },
  {
    name: 'large bodies',
    what: '30 upserts of 5 MiB at once, refused for a wrong document at the end',
    tenants: 1,
    run: async ([attacker]) => {
      const texts = numbers(documentsMax - 1).map(() => 'x '.repeat(textBytesMax / 2));
      const documents = [...documentsWith(texts), { doc_id: '' }];
      const body = Buffer.from(JSON.stringify({ documents }));
      return Promise.all(numbers(30).map(() => attacker.send(documentsOf(attacker), body)));
    },
  },
];

function documentsWith(texts: readonly string[]): readonly object[] {
  return texts.map((text, n) => ({ doc_id: `hostile-${n}`, text }));
}

function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}
