/** The console reads a file before it uploads anything, and refuses rows that it would read in part. */
import { describe, expect, it } from 'vitest';
import { columnsIn, documentsIn } from '../../src/console/upload/document-source.ts';

const csv = (text: string) => documentsIn({ name: 'a.csv', text }).map((document) => JSON.parse(document));

describe('a CSV file', () => {
  it('has a document a row, whose cells may hold quotation marks and ends of lines', () => {
    expect(
      csv('id,text,kind\nowl,"Owls, ""wise"" birds,\nhunt.",bird\neel,Eels swim 19" deep.,fish\n'),
    ).toEqual([
      { doc_id: 'owl', text: 'Owls, "wise" birds,\nhunt.', metadata: { kind: 'bird' } },
      { doc_id: 'eel', text: 'Eels swim 19" deep.', metadata: { kind: 'fish' } },
    ]);
  });

  it.each([
    ['too few', 'id,text,kind\nowl,Owls hunt.\n', 'row 1 has 2 fields, the header 3'],
    ['too many', 'id,text\nowl,Owls hunt.\neel,Eels swim, too.\n', 'row 2 has 3 fields, the header 2'],
  ])('with a row that has %s fields is refused', (_what, text, problem) => {
    expect(() => csv(text)).toThrow(problem);
  });

  it('whose rows expire is refused', () => {
    expect(() => csv('id,text,expires_at\nowl,Owls hunt.,2030-01-01T00:00:00Z\n')).toThrow('expires_at');
  });
});

it('JSON lines whose documents expire are refused', () => {
  const text = '{"doc_id":"owl","text":"Owls hunt.","expires_at":"2030-01-01T00:00:00Z"}\n';
  expect(() => documentsIn({ name: 'a.jsonl', text })).toThrow('expires_at');
});

describe('the columns of a source', () => {
  it('are those of the header of CSV, and those of JSON lines', () => {
    const lines = '{"uid":1,"body":"Owls.","metadata":{"a":1}}\n\n{"uid":2,"kind":"fish"}\n';
    expect(
      columnsIn([
        { name: 'a.csv', text: 'sku,body\n1,Owls.\n' },
        { name: 'b.jsonl', text: lines },
        { name: 'note.txt', text: 'no,columns' },
      ]),
    ).toEqual(['sku', 'body', 'uid', 'kind']);
  });

  it('that a person chose hold the id, the text and the title; all others become metadata', () => {
    const columns = { id: 'uid', text: 'body', title: 'label' };
    const text = '{"uid":7,"body":"Owls.","label":"Owl","text":"short","metadata":{"a":1}}\n';
    expect(JSON.parse(documentsIn({ name: 'a.jsonl', text }, columns)[0] ?? '')).toEqual({
      doc_id: '7',
      text: 'Owls.',
      metadata: { a: 1, text: 'short', title: 'Owl' },
    });
    expect(() => documentsIn({ name: 'a.csv', text: 'sku,body\n1,Owls.\n' }, columns)).toThrow(
      'a.csv has no column uid',
    );
  });

  it('must be chosen where none is usual', () => {
    expect(() => csv('sku,body\n1,Owls.\n')).toThrow('a.csv: choose the column of the ids');
    expect(() => csv('id,body\n1,Owls.\n')).toThrow('a.csv: choose the column of the texts');
  });

  it('leave a row without an id as it is, so that the service names it', () => {
    expect(documentsIn({ name: 'a.jsonl', text: '{"text":"Owls.","kind":"bird"}' })).toEqual([
      '{"text":"Owls.","metadata":{"kind":"bird"}}',
    ]);
  });
});
