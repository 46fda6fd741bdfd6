import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Block } from '../../src/cli/blocks.ts';
import { beginsWithArray, readElements } from '../../src/cli/json-array.ts';

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
          const { isArray, blocks } = await beginsWithArray(
            blocksOf(JSON.stringify(values, null, indent), size),
          );
          expect(isArray).toBe(true);
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
    const { isArray, blocks } = await beginsWithArray(blocksOf('\uFEFF [1]', size));
    expect(isArray).toBe(true);
    expect(await elementsOf(blocks)).toEqual([1]);
  });

  it.each(['{"a":[]}', '', ' \n', '5'])('are looked for in nothing else: %j', async (text) => {
    const { isArray } = await beginsWithArray(blocksOf(text, 2));
    expect(isArray).toBe(false);
  });
});
