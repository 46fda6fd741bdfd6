import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import { CustomerObject, readJsonBody } from '../../../src/http/body/json-body.ts';

/** What the reader makes of a text, or the first issue it has with it. */
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
    const text = '{"__proto__":{"x":1},"constructor":2,"__proto__":{"toString":3},"length":4}';
    expect(JSON.stringify(read(text).value)).toBe('{"__proto__":{"toString":3},"constructor":2,"length":4}');
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
    // What follows is not looked at.
    expect(read(`${text.slice(0, -1)}nonsense`).issue).toEqual({ path, code });
  });
});
