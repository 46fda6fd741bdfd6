/** An import looks at its first rows before it sends anything. */
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { repositoryRoot } from '../../support/running/launch.ts';
import { useImportStage } from './import-stage.ts';

const { file, importFrom, expectRefused } = useImportStage('looked-at');

describe('the first rows', () => {
  it('a JSON object in several lines is told from lines that are no JSON', async () => {
    const several =
      /begins with one JSON object in several lines, where each line or element of an array should be one$/;
    await expectRefused(file('one.json', '{\n  "id": "a",\n  "text": "t"\n}\n'), several);
    await expectRefused(
      path.join(repositoryRoot, 'test/fixtures/libraries/milvus/bulk.json'),
      /in several lines.*--from milvus reads$/,
    );
    const broken = file('broken.jsonl', '{"id":"a",\n{"id":"b","text":"t"}\n');
    expect((await importFrom(broken)).document).toMatchObject({
      done: 1,
      failures: [{ line: 1, error: 'not valid JSON' }],
    });
  });

  it('a row without a text names the fields with texts, the longest first, or else those with strings', async () => {
    const deep =
      '{"_id":"1","_source":{"body":"Bees dance.","note":"Bees dance and fly."},"link":"http://x"}\n';
    await expectRefused(
      file('deep.jsonl', deep),
      /line 1: there is no text; --text-field takes another field, such as "_source.note" or "_source.body" \(/,
    );
    await expectRefused(
      file('short.jsonl', '{"_id":"1","payload":{"a":{"body":"x"}}}\n'),
      /such as "payload.a.body" \(/,
    );
    await expectRefused(file('none.jsonl', '{"_id":"1","n":5}\n'), /line 1: the text is empty \(/);
  });

  it('titles become no texts while another field holds more', async () => {
    const rows =
      '{"id":"a","title":"Wal","content":"Der Wal taucht.","by":"A B"}\n{"id":"b","title":"Biene","url":"http://x/y/z"}\n';
    const titles = file('titles.jsonl', rows);
    await expectRefused(
      titles,
      /so the title would be the whole text, while "content" holds more: choose with --text-field/,
    );
    const csv = file('titles.csv', 'id,title,body\na,Wal,Der Wal taucht.\n');
    await expectRefused(csv, /while "body" holds more/);
    await expectRefused(
      file('cn.jsonl', '{"id":"a","title":"鲸","body":"鲸鱼潜水"}\n'),
      /while "body" holds more/,
    );
    await expectRefused(titles, /while "content" holds more/, '--metadata-fields', 'by');
    await expectRefused(
      file('empty.jsonl', '{"id":"a","title":"Wal","text":"","body":"Der Wal taucht."}\n'),
      /has no text beside the title, .* while "body" holds more/,
    );
    expect((await importFrom(titles, '--text-field', 'title')).document).toMatchObject({ done: 2 });
    const labels = {
      id: 'a',
      title: 'On bees',
      by: 'A B',
      at: '2026-11-27 09:30:00',
      url: 'http://x/y/z/bees',
    };
    expect((await importFrom(file('labels.jsonl', JSON.stringify(labels)))).document).toMatchObject({
      done: 1,
    });
  });
});
