/** How a row becomes a document, or a problem that says what is wrong. */
import { describe, expect, it } from 'vitest';
import { DocumentReader, isProblem, type ImportItem } from '../../../src/cli/import/document.ts';
import type { FieldChoice } from '../../../src/cli/import/fields.ts';
import { parseLine } from '../../../src/cli/jsonl.ts';

function readLine(text: string | Buffer, number = 1, reader = new DocumentReader(), file = 'a'): ImportItem {
  const line = { number, bytes: Buffer.from(text), fileBytesRead: 0 };
  return reader.read({ number, file, line: number, parsed: parseLine(line), bytesRead: 0 });
}

const documentOf = (object: unknown, choice: FieldChoice = {}): unknown => {
  const { item } = readLine(JSON.stringify(object), 7, new DocumentReader(choice));
  return isProblem(item) ? item.error : item.document;
};

describe('a line becomes a document', () => {
  it('whose text is title, a space, text', () => {
    expect(documentOf({ _id: 'a', title: 'T', text: 'body' })).toEqual({
      doc_id: 'a',
      text: 'T body',
      metadata: { title: 'T' },
    });
    expect(documentOf({ id: 'a', title: '', text: 'body' })).toMatchObject({ text: 'body' });
    expect(documentOf({ doc_id: 'a', title: 'T', text: '' })).toMatchObject({ text: 'T' });
  });

  it('with the text that is sent in a metadata field, if it is to be kept', () => {
    const row = { title: 'T', text: 'body', year: 1 };
    const kept = { doc_id: 'a', text: 'T body', metadata: { title: 'T', year: 1 } };
    // The client adds it.
    expect(documentOf({ _id: 'a', ...row }, { keepText: 'body' })).toEqual(kept);
    expect(documentOf({ _id: 'a', ...row, body: 'other' }, { keepText: 'body' })).toBe(
      'the row has a field "body" of its own: --keep-text needs another name',
    );
    expect(
      documentOf({ _id: 'a', ...row, body: 'other' }, { keepText: 'body', metadata: ['year'] }),
    ).toMatchObject({ metadata: { year: 1 } });
    // The id of a row without one does not change.
    expect(documentOf(row, { autoId: true, keepText: 'copy' })).toMatchObject({
      doc_id: (documentOf(row, { autoId: true }) as { readonly doc_id: string }).doc_id,
    });
    expect(documentOf({ id: 'a', text: 'x'.repeat(17_000) }, { keepText: 'body' })).toMatch(
      /^the metadata with the text has 17011 bytes, 16384 are allowed: --cut makes several/,
    );
    expect(documentOf({ id: 'a', text: 'x '.repeat(60_000) }, {})).toBe(
      'the text has 120000 bytes, 102400 are allowed: --cut makes several documents of it',
    );
    const { item } = readLine(
      JSON.stringify({ id: 'a', text: 'x '.repeat(60_000) }),
      1,
      new DocumentReader({ keepText: 'body', cut: true }),
    );
    expect(item).toMatchObject({ docId: 'a', parts: 8 });
  });

  it('with an identifier and a text inside objects, which leave the metadata', () => {
    const row = { meta: { id: 'a', kind: 'x' }, payload: { body: 'inner' }, year: 1 };
    const choice = { id: 'meta.id', text: 'payload.body' };
    expect(documentOf(row, choice)).toEqual({
      doc_id: 'a',
      text: 'inner',
      metadata: { meta: { kind: 'x' }, year: 1 },
    });
    expect(documentOf({ ...row, 'payload.body': 'own' }, choice)).toMatchObject({
      text: 'own',
      metadata: { payload: { body: 'inner' } },
    });
    expect(documentOf({ ...row, meta: 7 }, choice)).toBe('no meta.id');
    expect(documentOf({ ...row, meta: [{ id: 'a' }] }, choice)).toBe('no meta.id');
  });

  it.each([
    ['1126128864018916581', '1126128864018916581'],
    ['-9007199254740993', '-9007199254740993'],
    ['9007199254740992', '9007199254740992'],
    ['18014398509481984', '18014398509481984'],
    ['12345678901234567890123', '12345678901234567890123'],
    ['7', '7'],
    ['"007"', '007'],
  ])('with the digits of the identifier %s', (id, docId) => {
    const { item } = readLine(`{"id":${id},"text":"t"}`);
    expect(item).toMatchObject({ docId });
  });

  it('with its title as metadata too, unless metadata has one, it is long, or it is the text', () => {
    expect(documentOf({ id: 'a', title: 'T', text: 't', metadata: { title: 'U' } })).toMatchObject({
      metadata: { title: 'U' },
    });
    expect(documentOf({ id: 'a', title: 'x'.repeat(1025), text: 't' })).toMatchObject({ metadata: {} });
    expect(documentOf({ id: 'a', title: 'T', text: 't' }, { text: 'title' })).toEqual({
      doc_id: 'a',
      text: 'T',
      metadata: { text: 't' },
    });
  });

  it('with metadata that is given as JSON text, its long numbers included', () => {
    const metadata = '{"kind":1,"n":12345678901234567890}';
    const { item } = readLine(JSON.stringify({ id: 'a', text: 't', metadata }));
    expect('document' in item && JSON.stringify(item.document)).toBe(
      `{"doc_id":"a","text":"t","metadata":${metadata}}`,
    );
    expect(documentOf({ id: 'a', text: 't', metadata: 'null' })).toMatchObject({ metadata: {} });
  });

  it.each([
    ['{"id":"a","text":"t","kind":1,"kind":2}', 'kind occurs twice in one object'],
    ['{"id":"a","text":"t","id":"b"}', 'id occurs twice in one object'],
    [
      '{"id":"a","text":"t","metadata":{"l":[0,{"x":1,"\\u0078":1}]}}',
      'metadata.l.1.x occurs twice in one object',
    ],
    ['{"id":"a","text":"t","metadata":"{\\"x\\":1,\\"x\\":2}"}', 'metadata: x occurs twice in one object'],
  ])('refuses %s, because a value would be lost', (line, error) => {
    expect(readLine(line, 7).item).toMatchObject({ line: 7, error });
  });

  it.each([
    ['2021-06-01T08:00:00Z', '2021-06-01T08:00:00.000Z'],
    ['2027-06-01T08:00:00.123456+02:00', '2027-06-01T06:00:00.123Z'],
    ['2027-06-01', '2027-06-01T00:00:00.000Z'],
  ])('that expires at its expires_at: %s', (given, expires) => {
    expect(documentOf({ id: '1', text: 'x bee', expires_at: given })).toEqual({
      doc_id: '1',
      text: 'x bee',
      metadata: {},
      expires_at: expires,
    });
  });

  it('that does not expire with null, or if expires_at is named as metadata; another value is refused', () => {
    const row = { id: '1', text: 'x', expires_at: '2021-06-01T08:00:00Z' };
    expect(documentOf({ ...row, expires_at: null })).toEqual({ doc_id: '1', text: 'x', metadata: {} });
    const metadata = { expires_at: row.expires_at };
    expect(documentOf(row, { metadata: ['expires_at'] })).toEqual({ doc_id: '1', text: 'x', metadata });
    expect(documentOf({ ...row, metadata })).toMatchObject({ metadata, expires_at: expect.any(String) });
    expect(documentOf(row, { metadata: [] })).toHaveProperty('expires_at');
    for (const value of ['soon', 1_622_534_400, true, '2021-13-01', {}])
      expect(documentOf({ ...row, expires_at: value })).toMatch(
        /^expires_at must be a time such as .*--metadata-fields/,
      );
  });

  it('refuses metadata that is a long number', () => {
    const { item } = readLine('{"id":"a","text":"t","metadata":12345678901234567890}');
    expect(item).toHaveProperty('error');
  });

  it('with its metadata, `__proto__` included, as data', () => {
    const line = Buffer.from('{"id":"a","text":"t","metadata":{"__proto__":{"x":1},"n":1}}');
    const { item } = readLine(line);
    expect('document' in item && JSON.stringify(item.document)).toBe(
      '{"doc_id":"a","text":"t","metadata":{"__proto__":{"x":1},"n":1}}',
    );
  });

  it('with the digits of long integers, and numbers beyond a double, as they came', () => {
    const line = Buffer.from(
      '{"id":"a","text":"t","metadata":{"n":[12345678901234567890,-9007199254740993,1e3],"m":[-1E+400,"1e400",1e-400],"d":[12345678901234567.89,0.1]}}',
    );
    const { item } = readLine(line);
    expect('document' in item && JSON.stringify(item.document)).toContain(
      '"n":[12345678901234567890,-9007199254740993,1000],"m":[-1E+400,"1e400",1e-400],"d":[12345678901234567.89,0.1]',
    );
  });

  it('or a problem that says what is wrong', () => {
    expect(documentOf({ text: 't' })).toBe('no doc_id, _id or id');
    expect(documentOf({ id: '', text: 't' })).toMatch(/has 0 characters/);
    expect(documentOf({ id: 'é'.repeat(256), text: 't' })).toMatch(/has 256 characters/);
    expect(documentOf({ id: '🦆'.repeat(255), text: 't' })).toHaveProperty('doc_id');
    expect(documentOf({ id: 'a', text: '' })).toBe('the text is empty');
    expect(documentOf({ id: 'a', text: 5 })).toBe('title and text must be strings');
    expect(documentOf({ id: 1.5, text: 't' })).toBe('the identifier must be a string or an integer');
    for (const metadata of [[], '[]', '{"a"', 5])
      expect(documentOf({ id: 'a', text: 't', metadata })).toBe(
        'metadata must be an object, or the JSON text of one',
      );
  });

  it('of at most 100 KiB of UTF-8, title included', () => {
    const limit = 100 * 1024;
    expect(documentOf({ id: 'a', text: 'x'.repeat(limit) })).toHaveProperty('text');
    expect(documentOf({ id: 'a', title: 'T', text: 'x'.repeat(limit - 1) })).toMatch(/102401 bytes/);
    expect(documentOf({ id: 'a', text: 'é'.repeat(limit / 2 + 1) })).toMatch(/102402 bytes/);
  });
});

const vector = (length: number): readonly number[] => Array.from({ length }, (_, place) => place / 8);

describe('metadata has no vectors', () => {
  const counts = (object: unknown, choice: FieldChoice = {}) => {
    const reader = new DocumentReader(choice);
    const { item } = readLine(JSON.stringify({ id: 'a', text: 't', ...(object as object) }), 1, reader);
    return {
      metadata: isProblem(item) ? item.error : item.document.metadata,
      arrays: Object.fromEntries(reader.arraysLeftOut),
      sent: Object.fromEntries(reader.sentAsMetadata),
    };
  };

  it.each([
    ['384 numbers', vector(384)],
    ['1,536 numbers', vector(1536)],
    ['65 numbers', vector(65)],
    ['NaN, which is null', [null, ...vector(64)]],
    ['one vector for each token', Array.from({ length: 9 }, () => vector(8))],
    ['numbers as Python writes them in CSV', JSON.stringify(vector(65))],
    ['numbers as numpy writes them', `[ ${vector(65).join('  ')}]\n`],
  ])('of %s', (_, embedding) => {
    expect(counts({ embedding, kind: 'x' })).toEqual({
      metadata: { kind: 'x' },
      arrays: { embedding: 1 },
      sent: { kind: 1 },
    });
    expect(counts({ metadata: { node: [{ embedding, kind: 'x' }] } })).toMatchObject({
      metadata: { node: [{ kind: 'x' }] },
      arrays: { 'node.embedding': 1 },
    });
  });

  it.each([
    ['64 numbers', vector(64)],
    ['65 things, one of them a name', [...vector(64), 'x']],
    ['65 names', vector(65).map(String)],
    ['the text of 64 numbers', JSON.stringify(vector(64))],
    ['a long text between brackets', `[${'a '.repeat(99)}]`],
  ])('but keeps %s', (_, list) => {
    expect(counts({ list })).toEqual({ metadata: { list }, arrays: {}, sent: { list: 1 } });
  });

  it('unless --metadata-fields names them', () => {
    const embedding = vector(65);
    expect(counts({ embedding }, { metadata: ['embedding'] }).metadata).toEqual({ embedding });
    expect(counts({ embedding: vector(9000) }, { metadata: ['embedding'] }).metadata).toMatch(
      /bytes, 16384 are allowed: --metadata-fields chooses its fields$/,
    );
  });
});

describe('metadata never has the text, or itself, again', () => {
  const reader = new DocumentReader({ id: 'id_' });
  // As `Document(text=...).to_dict()` of LlamaIndex has it.
  const long = 'The blue whale is the largest animal that has ever lived on this planet.';

  it.each(['bee', long])('as LlamaIndex writes it: %s', (text) => {
    const row = {
      id_: 'a',
      embedding: null,
      metadata: { kind: 'animal', serial: 7 },
      relationships: { 1: { node_id: 'b', metadata: { kind: 'animal', serial: 7 } } },
      text_resource: { embeddings: null, text, path: null },
      text,
      class_name: 'Document',
    };
    const { item } = readLine(JSON.stringify(row), 1, reader);
    expect(item).toHaveProperty('document.metadata', {
      embedding: null,
      relationships: { 1: { node_id: 'b' } },
      text_resource: { embeddings: null, path: null },
      class_name: 'Document',
      kind: 'animal',
      serial: 7,
    });
    expect([...reader.leftOut.keys()]).toEqual(['relationships.1.metadata', 'text_resource.text']);
  });

  it('under any name, if it is too long for a label', () => {
    expect(documentOf({ id: 'a', text: long, page_content: long, metadata: { copy: long } })).toMatchObject({
      metadata: {},
    });
    expect(documentOf({ id: 'a', text: 'Paris', city: 'Paris' })).toMatchObject({
      metadata: { city: 'Paris' },
    });
  });
});
