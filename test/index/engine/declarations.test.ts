/** The addon has the methods that TypeScript declares, and no others. No compiler looks at both sides. */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { declaredMethods, definedMethods } from './addon-methods.ts';

const root = path.resolve(import.meta.dirname, '../../..');
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');
const binding = globSync('native/binding/*.cpp', { cwd: root }).toSorted().map(read).join('\n');
const engine = read('src/index/engine/native.ts');

const sides = [
  { owner: 'IndexObject', declared: [[engine, 'NativeIndex']] },
  { owner: 'SearchObject', declared: [[engine, 'NativeSearchRun']] },
  {
    owner: 'EngineObject',
    declared: [
      [engine, 'NativeEngine'],
      [engine, 'NativeProbe'],
    ],
  },
  {
    owner: 'exports',
    declared: [
      [read('src/encoder/inference/rows.ts'), 'Addon'],
      [read('src/process/process-tuning.ts'), 'Addon'],
    ],
  },
] as const;

describe.each(sides)('$owner', ({ owner, declared }) => {
  it('has the methods that are declared, with as many arguments', () => {
    const names = declared.flatMap(([source, name]) => [...declaredMethods(source, name)]);
    expect(names.length).toBeGreaterThan(1);
    expect(Object.fromEntries(definedMethods(binding, owner))).toEqual(Object.fromEntries(names));
  });
});

describe('a planted difference is found', () => {
  const changed = (text: string, from: string, to: string): string => {
    expect(text).toContain(from);
    return text.replace(from, to);
  };

  it.each([
    ['a method that the addon calls otherwise', '("addParts")', '("addPart")'],
    [
      'an argument that the addon no longer reads',
      'takeInteger(info[3], "first"',
      'takeInteger(info[2], "first"',
    ],
  ])('%s', (_difference, from, to) => {
    const defined = definedMethods(changed(binding, from, to), 'IndexObject');
    expect(defined).not.toEqual(declaredMethods(engine, 'NativeIndex'));
  });

  it.each([
    [
      'a parameter more in the declaration',
      'seal(segmentId: number)',
      'seal(segmentId: number, quick?: boolean)',
    ],
    [
      'a method that only the declaration has',
      '  segments(): readonly SegmentInfo[];',
      '  segments(): readonly SegmentInfo[];\n  merge(): void;',
    ],
  ])('%s', (_difference, from, to) => {
    const declared = declaredMethods(changed(engine, from, to), 'NativeIndex');
    expect(declared).not.toEqual(definedMethods(binding, 'IndexObject'));
  });

  it('an argument less in a helper that reads for its callers', () => {
    const defined = definedMethods(
      changed(binding, 'takeBoolean(info[1], "verify")', 'true'),
      'EngineObject',
    );
    expect(defined.get('inspectCodes')).toBe(1);
  });
});
