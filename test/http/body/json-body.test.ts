import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import { CustomerObject, readJsonBody } from '../../../src/http/body/json-body.ts';

/** The value that the reader makes of a text, or its first issue with the text. */
function read(text: string): { readonly value?: unknown; readonly issue?: { path: string; code: string } } {
  try {
    return { value: readJsonBody(Buffer.from(text)) };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { path, code } = error.issues![0]!;
    return { issue: { path, code } };
  }
}

/** The value as compact JSON, or undefined for a text that is none. */
function parsed(text: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** Counts the members of all objects in a value. */
function membersOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const own = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce((sum: number, inner) => sum + membersOf(inner), own);
}

/** `JSON.parse` keeps one value of a name, so its result has fewer members than the text has colons outside of strings. */
function hasRepeatedName(text: string): boolean {
  const colons = text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '').split(':').length - 1;
  return colons > membersOf(JSON.parse(text));
}

/** Holds the reader against `JSON.parse`, with the text as a whole body and within an object of the customer's. */
function expectAgreement(given: string): void {
  // As bytes would have it: a test may cut a character in half.
  const text = given.toWellFormed();
  const expected = parsed(text);
  const plain = read(text);
  const wrapped = read(`{"metadata": {"v": ${text}}}`);
  if (expected === undefined) {
    expect([text, plain.issue]).toEqual([text, { path: '', code: 'invalid_json' }]);
    // A text may be no JSON alone and yet close one brace and open another.
    if (parsed(`{"metadata":{"v":${text}}}`) !== undefined) return;
    expect([text, wrapped.issue]).toEqual([text, { path: '', code: 'invalid_json' }]);
    return;
  }
  if (hasRepeatedName(text)) {
    expect([text, plain.issue?.code, wrapped.issue?.code]).toEqual([text, 'duplicate', 'duplicate']);
    expect([text, wrapped.issue?.path]).toEqual([text, `metadata.v.${plain.issue?.path}`]);
    return;
  }
  expect([text, JSON.stringify(plain.value)]).toEqual([text, expected]);
  const { metadata } = wrapped.value as { metadata: CustomerObject };
  expect([text, parsed(metadata.text)]).toEqual([text, `{"v":${expected}}`]);
  // It is a fixed point: nothing is left to take out.
  expect(read(`{"metadata":${metadata.text}}`).value).toEqual({ metadata });
}

const everything =
  '{"a":[0,-1,2.50,-0.0,1e5,1E-7,12E+03,[],[[ ]],{ }],"é\\n\\"\\\\\\/\\u00e9\\uD83D\\ude00":"\\ud800 中😀",\r\n\t"c":{"":true,"d":false,"e":null}}';

describe('the reader of bodies', () => {
  test('agrees with JSON.parse about a text with everything JSON has, and about each that differs in one byte', () => {
    expectAgreement(everything);
    for (let at = 0; at <= everything.length; at += 1) {
      expectAgreement(everything.slice(0, at));
      for (const byte of '{}[]",:\\/ \n\u0000\u001f019-+.eEtfnu\u007fé') {
        expectAgreement(everything.slice(0, at) + byte + everything.slice(at));
        expectAgreement(everything.slice(0, at) + byte + everything.slice(at + 1));
      }
    }
  });

  test('agrees with JSON.parse about texts of any bytes and of any JSON', () => {
    const bytes = fc.array(
      fc.constantFrom(
        ...Array.from('{}[]",:\\/ 01-.eEtrufalsn'),
        '"a":',
        '"\\u',
        'true',
        'null',
        '1e9',
        '{"',
      ),
      {
        maxLength: 12,
      },
    );
    fc.assert(
      fc.property(
        bytes.map((pieces) => pieces.join('')),
        expectAgreement,
      ),
      { numRuns: 3_000 },
    );
    fc.assert(fc.property(fc.json({ stringUnit: 'binary', maxDepth: 4 }), expectAgreement), {
      numRuns: 1_000,
    });
  });

  test('finds the end of long strings wherever their quotes and backslashes lie', () => {
    const pieces = fc.array(
      fc.tuple(fc.constantFrom('\\"', '\\\\', 'x', '\\n', '\\\\\\"', 'é'), fc.nat(90)),
      { maxLength: 6 },
    );
    fc.assert(
      fc.property(pieces, (parts) => {
        const text = `"${parts.map(([piece, count]) => piece.repeat(count)).join('')}"`;
        expectAgreement(text);
        expectAgreement(`[${text},"y"]`);
        expectAgreement(text.slice(0, -1));
      }),
      { numRuns: 500 },
    );
  });

  test('keeps keys that mean something to JavaScript', () => {
    const text = '{"__proto__":{"x":1},"constructor":2,"length":4}';
    expect(JSON.stringify(read(text).value)).toBe(text);
    expect((read(`{"metadata":${text}}`).value as { metadata: CustomerObject }).metadata.text).toBe(text);
  });

  test('refuses a name that occurs twice in one object, by its path', () => {
    const refused: [text: string, path: string][] = [
      ['{"a":1,"a":2}', 'a'],
      ['{"a":1,"b":2,"c":3,"a":1}', 'a'],
      ['{"documents":[{"doc_id":"a"},{"doc_id":"b","text":"t","doc_id":"c"}]}', 'documents.1.doc_id'],
      ['{"where":{"tags":{"contains":"a","contains":"b"}}}', 'where.tags.contains'],
      ['{"filter":{},"filter":{}}', 'filter'],
      [
        '{"documents":[{"metadata":{"l":[1,[{"x":0},{"x":1,"y":2, "x" :3}]]}}]}',
        'documents.0.metadata.l.1.1.x',
      ],
      ['{"metadata":{"a":1,"\\u0061":2}}', 'metadata.a'],
      ['{"metadata":{"\\"\\\\":{"b\\"":1,"b\\u0022":2}}}', 'metadata."\\.b"'],
      ['{"metadata":{"😀":1,"\\uD83D\\ude00":2}}', 'metadata.😀'],
      ['{"metadata":{"__proto__":1,"__proto__":2}}', 'metadata.__proto__'],
      ['{"__proto__":1,"__proto__":2}', '__proto__'],
      ['{"metadata":{"":1,"":2}}', 'metadata.'],
      [`{"metadata":{"${'n'.repeat(99)}":1,"${'n'.repeat(99)}":2}}`, `metadata.${'n'.repeat(64)}...`],
    ];
    for (const [text, path] of refused)
      expect([text, read(text).issue]).toEqual([text, { path, code: 'duplicate' }]);
  });

  test('accepts a name again in another object, and names that differ late', () => {
    const long = 'n'.repeat(64);
    for (const text of [
      '{"a":{"a":{"a":[{"a":1},{"a":2}]}},"b":{"a":1}}',
      '{"a":{"b":1},"c":{"b":2,"a":3},"b":{"c":0}}',
      '{"x":"\\",\\"x\\":","y":"{\\"x\\":1,\\"x\\":2}"}',
      `{"${long}a":1,"${long}b":2}`,
    ])
      expectAgreement(text);
  });

  test.each([
    ['51 items', `{"x":{"y":[${'0,'.repeat(50)}0]}}`, 'x.y', 'too_big'],
    ['17 levels', `{"x":${'['.repeat(16)}${']'.repeat(16)}}`, 'x', 'too_deep'],
    [
      '5,000 values',
      `{"x":[${'[0,0,0,0,0,0,0,0,0,0,0,0],'.repeat(49)}[]]`.replaceAll(
        '0,0',
        '[0,0,0,0,0,0,0,0],[0,0,0,0,0,0,0,0]',
      ),
      'x',
      'too_big',
    ],
    [
      '65 customer objects',
      `{"x":[${'{"filter":{}},'.repeat(25)}${'{"metadata":{},"where":{}},'.repeat(20)}0]}`,
      'x',
      'too_big',
    ],
  ])('stops at %s', (_name, text, path, code) => {
    expect(read(text).issue).toEqual({ path, code });
    // The reader does not look at the rest of the text.
    expect(read(`${text.slice(0, -1)}nonsense`).issue).toEqual({ path, code });
  });
});

describe('null', () => {
  const readWithout = (text: string): unknown => readJsonBody(Buffer.from(text), { dropsNulls: true });

  test('counts as absent in objects, also in place of an object of the customer, and stays within one', () => {
    expect(readWithout('{"a":null,"b":{"c":null,"d":1},"e":[null],"filter":null,"where":null}')).toEqual({
      b: { d: 1 },
      e: [null],
    });
    expect(readWithout('{"metadata":{"a":null}}')).toMatchObject({ metadata: { text: '{"a":null}' } });
    expect(readJsonBody(Buffer.from('{"a":null}'))).toEqual({ a: null });
  });

  test('does not hide a name that comes twice, nor what is no JSON', () => {
    expect(() => readWithout('{"a":null,"a":1}')).toThrow(ServiceError);
    expect(() => readWithout('{"filter":nul}')).toThrow(ServiceError);
  });
});
