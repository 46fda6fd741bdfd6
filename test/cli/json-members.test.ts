import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Block } from '../../src/cli/blocks.ts';
import { beginningOf, headOf, readElements, readMembers } from '../../src/cli/json-members.ts';

async function* blocksOf(text: string, size: number): AsyncGenerator<Block> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) {
    yield { bytes: bytes.subarray(at, at + size), bytesRead: Math.min(bytes.length, at + size) };
  }
}

async function elementsOf(blocks: AsyncGenerator<Block>): Promise<readonly unknown[]> {
  const elements: unknown[] = [];
  for await (const { bytes } of readElements(blocks, 'a file')) {
    elements.push(bytes === undefined ? 'too long' : JSON.parse(bytes.toString()));
  }
  return elements;
}

describe('elements of a JSON array', () => {
  it('are those of the array, however it is written and cut into blocks', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.jsonValue()),
        fc.integer({ min: 0, max: 3 }),
        fc.integer({ min: 1, max: 40 }),
        async (values, indent, size) => {
          const { text, blocks } = await headOf(blocksOf(JSON.stringify(values, null, indent), size));
          expect(text[0]).toBe('[');
          expect(JSON.stringify(await elementsOf(blocks))).toBe(JSON.stringify(values));
        },
      ),
    );
  });

  it('over the limit are reported without being held, and the next one is read', async () => {
    const block = Buffer.from('x'.repeat(1 << 20));
    const blocks = async function* (): AsyncGenerator<Block> {
      yield { bytes: Buffer.from('["'), bytesRead: 0 };
      for (let megabyte = 0; megabyte < 17; megabyte += 1) yield { bytes: block, bytesRead: 0 };
      yield { bytes: Buffer.from('",5]'), bytesRead: 0 };
    };
    expect(await elementsOf(blocks())).toEqual(['too long', 5]);
  });

  it.each([1, 2, 3, 100])('are found behind a byte order mark in blocks of %i', async (size) => {
    const { text, blocks } = await headOf(blocksOf('\uFEFF [1]', size));
    expect(text).toBe('[1]');
    expect(await elementsOf(blocks)).toEqual([1]);
  });
});

describe('members at a path', () => {
  const membersOf = async (text: string, path: readonly string[], size = 7): Promise<readonly string[]> => {
    const members: string[] = [];
    for await (const { bytes, value, number, problem } of readMembers(blocksOf(text, size), {
      name: 'f',
      path,
    })) {
      members.push(`${number} ${value} ${problem ?? String(bytes).trim()}`);
    }
    return members;
  };

  it('are those of the object that the path names, in each value of the file, however it is written', async () => {
    const names = fc.constantFrom('a', 'b', 'rows', 'ro"ws', '\\', 'é');
    const rest = fc.dictionary(names, fc.jsonValue({ maxDepth: 2 }), { noNullPrototype: true });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(rest, rest, fc.array(fc.jsonValue({ maxDepth: 2 })), rest), { maxLength: 3 }),
        fc.integer({ min: 0, max: 2 }),
        fc.integer({ min: 1, max: 40 }),
        async (values, indent, size) => {
          const file = values.map(([before, inner, rows, after]) => ({
            ...before,
            // They keep their place between the others.
            result: Object.assign({ ...inner, rows }, after, { rows }),
            ...after,
          }));
          const text = file.map((value) => JSON.stringify(value, null, indent)).join('\n');
          const found: unknown[] = [];
          for await (const member of readMembers(blocksOf(text, size), {
            name: 'f',
            path: ['result', 'rows'],
          }))
            found.push([member.value, JSON.parse(String(member.bytes))]);
          const expected = values.flatMap(([, , rows], at) => rows.map((row) => [at + 1, row]));
          expect(JSON.stringify(found)).toBe(JSON.stringify(expected));
        },
      ),
    );
  });

  it('of an object have their names, and nothing else of the file is taken for them', async () => {
    expect(
      await membersOf('{"x":{"in":{"no":1}},"in":"\\"in\\":{","in ":[1],"in":{"a":1,"b":{"in":{}}}}', ['in']),
    ).toEqual(['1 1 "a":1', '2 1 "b":{"in":{}}']);
    expect(await membersOf('{"a":{}}\n{}', [])).toEqual(['1 1 "a":{}']);
  });

  it('are missed in each value without the path', async () => {
    const none = 'there are no rows: it has no "in"';
    const text = '{"in":null,"b":[1]}[{"in":[2]}]{"in":[]}{"in":[3]}{"a":{"in":[4]}}';
    expect(await membersOf(text, ['in'])).toEqual([`1 1 ${none}`, `2 2 ${none}`, '3 4 3', `4 5 ${none}`]);
  });

  it.each([
    ['{"in":[1', /ends within the object$/],
    ['{"in":[1]}x', /follows the end of the object$/],
    ['[1]]', /follows the end of the array$/],
  ])('of a file that is cut off, or that goes on otherwise, are refused: %s', async (text, message) => {
    await expect(membersOf(text, ['in'])).rejects.toThrow(message);
  });
});

describe('the beginning of a JSON text', () => {
  it.each([
    ['{"a":1}{"b":2}', { a: 1 }, true, 1],
    ['{"a":[1,2],"b":{"c":"x', { a: [1, 2], b: {} }, false, 1],
    ['{\n "a": [{"b": 9007199254740993}, {"b"', { a: [{ b: JSON.parse('9007199254740993') }, {}] }, false, 2],
    ['[{"a":"[{,\\""},', [{ a: '[{,"' }], false, 1],
    ['{"a":"x\ny"}', {}, false, 1],
    ['{"a":1,"b":2\n', { a: 1 }, false, 1],
  ])('of %j is what is whole of it', (text, value, isWhole, lines) => {
    const beginning = beginningOf(text);
    expect(JSON.parse(JSON.stringify(beginning?.value))).toEqual(value);
    expect(beginning).toMatchObject({ isWhole, lines });
  });

  it.each(['', 'x{"a":1}', '{"a":1\n{"b":2}', '{]', '{"a":1,"a":2}'])('of %j is none', (text) => {
    expect(beginningOf(text)).toBeUndefined();
  });
});
