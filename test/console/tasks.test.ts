/** The tasks that people come to the console for, done as a new user would: each from the overview, in at most five clicks. */
import { execFileSync } from 'node:child_process';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';

import { missingBrowser, type Page } from '../support/browser.ts';
import { createKey } from '../support/commands/command-line.ts';
import { expectReply } from '../support/running/client.ts';
import { useSharedStage } from '../support/running/stage.ts';
import { makeIndex, put, readUsage } from '../support/running/requests.ts';
import { index as indexSchema } from '../support/running/wire.ts';
import { useConsole } from './console-page.ts';

const reason = missingBrowser();
const clicksMax = 5;

describe.skipIf(reason !== undefined)(
  `tasks in the console${reason === undefined ? '' : `: ${reason}`}`,
  () => {
    const stage = useSharedStage();
    const { open, signIn, expectClosed } = useConsole(stage);
    let name: string;
    let id: string;
    let page: Page;
    let clicks = 0;

    const click = async (role: 'button' | 'link', named: string | RegExp): Promise<void> => {
      clicks += 1;
      await page.getByRole(role, { name: named, exact: true }).click();
    };
    const unfold = async (summary: string): Promise<void> => {
      clicks += 1;
      await page.getByText(summary).first().click();
    };
    /** Types where the focus is, and otherwise clicks first. */
    const type = async (label: string | RegExp, text: string): Promise<void> => {
      const field = page.getByLabel(label, { exact: true });
      if (!(await field.evaluate((element) => element === element.ownerDocument.activeElement))) {
        clicks += 1;
        await field.click();
      }
      await page.keyboard.press('ControlOrMeta+a');
      await page.keyboard.insertText(text);
    };
    const expectShown = (place: ReturnType<Page['locator']>): Promise<void> => place.waitFor();
    const press = (key: string): Promise<void> => page.keyboard.press(key);
    const indexReply = () => stage.client.send('GET', `/v1/indexes/${id}`);
    const documentReply = (docId: string) => stage.client.send('GET', `/v1/indexes/${id}/documents/${docId}`);
    const stored = async (docId: string): Promise<boolean> => (await documentReply(docId)).status === 200;

    function expectFewClicks(): void {
      expect(clicks).toBeLessThanOrEqual(clicksMax);
    }

    beforeAll(async () => {
      page = await open({ scheme: 'light', width: 1280 });
      await signIn(page);
      return () => expectClosed(page);
    });
    beforeEach(async ({ task }) => {
      ({ id, name } = await makeIndex(stage.client, {
        name: `animals of "${task.name}"`,
        match_fields: ['kind'],
      }));
      await put(stage.client, id, [
        { doc_id: 'bee', text: 'Honey bees dance.', metadata: { kind: 'insect', size: 1 } },
        { doc_id: 'ant', text: 'Ants follow trails of scent.', metadata: { kind: 'insect', size: 1 } },
        { doc_id: 'whale', text: 'The blue whale is large.', metadata: { kind: 'mammal', size: 30 } },
      ]);
      await page.goto('about:blank');
      await page.goto(`${stage.server.url}/console`);
      await expectShown(page.getByRole('link', { name }));
      clicks = 0;
      return expectFewClicks;
    });

    test('create an index', async () => {
      await click('button', 'New index');
      await expectShown(page.getByText(/may differ in language/));
      await type('Name', `${name} new`);
      await click('button', 'Create');
      await expectShown(page.getByRole('heading', { name: `${name} new` }));
    });

    test('choose the model of a new index from a list', async () => {
      const { model } = expectReply(await indexReply(), indexSchema);
      await page.route('**/v1/models', (route) =>
        route.fulfill({
          json: {
            data: [
              { name: 'other-maxsim', is_default: false },
              { name: model, is_default: true },
            ],
          },
        }),
      );
      await click('button', 'New index');
      const choice = page.getByRole('combobox', { name: 'Model' });
      await expect
        .poll(() => choice.locator('option').allTextContents())
        .toEqual([`${model} (default)`, 'other-maxsim']);
      await type('Name', `${name} chosen`);
      await choice.selectOption('other-maxsim');
      await click('button', 'Create');
      await expectShown(
        page.getByRole('alert').filter({ hasText: `no such model; the default is ${model}` }),
      );
      await page.unrouteAll();
    });

    test('fill an empty index as its page says', async () => {
      const empty = await makeIndex(stage.client, { name: `empty "index's"` });
      await page.reload();
      await click('link', empty.name);
      await expectShown(page.getByRole('heading', { name: 'This index is empty' }));
      const byApi = (await page.getByLabel('Fill the index over the API').textContent()) ?? '';
      const byCommand = (await page.getByLabel('Fill the index by the command line').textContent()) ?? '';
      expect(byCommand).toContain(`--index 'empty "index'\\''s"'`);
      execFileSync('sh', ['-c', byApi], {
        env: { ...process.env, MAXSIMD_API_KEY: stage.tenant.key },
        stdio: ['ignore', 'ignore', 'ignore'],
      });
      await click('link', 'Documents, Add documents');
      await expectShown(page.getByRole('link', { name: 'first' }));
      await page.reload();
      await expectShown(page.getByText('1 document in 1 chunk'));
      expect(await page.getByRole('heading', { name: 'This index is empty' }).count()).toBe(0);
    });

    test('choose the columns of an upload', async () => {
      await click('link', name);
      await click('link', 'Documents');
      await unfold('Add documents');
      clicks += 1;
      const csv = 'sku,label,body,kind\n1,Owl,Owls hunt.,bird\n2,Eel,Eels swim.,fish\n';
      await page
        .getByLabel(/^Files/)
        .setInputFiles([{ name: 'shop.csv', mimeType: 'text/csv', buffer: Buffer.from(csv) }]);
      await expectShown(page.getByText('Metadata: sku, label, body, kind.'));
      await page.getByRole('combobox', { name: 'Id column' }).selectOption('sku');
      await page.getByRole('combobox', { name: 'Text column' }).selectOption('body');
      await page.getByRole('combobox', { name: 'Title column' }).selectOption('label');
      await expectShown(page.getByText('Metadata: kind.'));
      await click('button', 'Upload');
      await expectShown(page.getByText('2 of 2 documents stored'));
      expect((await documentReply('1')).body).toMatchObject({ metadata: { title: 'Owl', kind: 'bird' } });
      await page.getByLabel(/^Or paste/).fill('{"uid":"3","story":"Bats hang.","title":"Bat"}');
      await expectShown(page.getByText('Metadata: kind, uid, story, title.'));
    });

    test('paste documents', async () => {
      await click('link', name);
      await click('link', 'Documents');
      await unfold('Add documents');
      // 123456789012345678901 has more digits than a number of the page.
      const line = '{"doc_id":"owl","text":"Owls hunt at night.","metadata":{"n":123456789012345678901}}';
      await type(/^Or paste/, `${line}\n{"doc_id":"no text"}`);
      await click('button', 'Upload');
      await expectShown(page.getByText('1 of 2 documents stored, 1 refused'));
      await expectShown(page.getByRole('link', { name: 'owl' }));
      expect((await documentReply('owl')).text).toContain('123456789012345678901');
    });

    test('learn that the model does not know a script', async () => {
      await click('link', name);
      await click('link', 'Documents');
      await unfold('Add documents');
      await type(/^Or paste/, '{"doc_id":"owl","text":"Owls hunt."}\n{"doc_id":"glyphs","text":"𓅓 𓆣"}');
      await click('button', 'Upload');
      await expectShown(page.getByText(/^1 document has text that the model does not know.*\(glyphs\)/));
    });

    test('upload files', async () => {
      await click('link', name);
      await click('link', 'Documents');
      await unfold('Add documents');
      const csv = 'id,text,kind\nowl,"Owls, ""wise"" birds,\nhunt.",bird\neel,Eels swim.,fish\n';
      clicks += 1;
      await page.getByLabel(/^Files/).setInputFiles([
        { name: 'more.csv', mimeType: 'text/csv', buffer: Buffer.from(csv) },
        { name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from('{A note} about bees.') },
      ]);
      await click('button', 'Upload');
      await expectShown(page.getByText('3 of 3 documents stored'));
      expect([await stored('owl'), await stored('eel'), await stored('note.txt')]).toEqual([
        true,
        true,
        true,
      ]);
      expect((await documentReply('owl')).body).toMatchObject({ metadata: { kind: 'bird' } });
    });

    test('search with a filter', async () => {
      await click('link', name);
      await type('Query', 'how large are they?');
      await click('button', 'Add a condition');
      await expectShown(page.getByRole('combobox', { name: /^Field/ }));
      await page.keyboard.type('kind');
      await type('Value', 'mammal');
      await press('Enter');
      await expectShown(page.getByText(/^1 result, 1 chunk scored, \d tokens read$/));
      await expectShown(page.getByRole('heading', { name: 'whale' }));
    });

    test('explain a score', async () => {
      await click('link', name);
      await type('Query', 'an insect');
      await press('Enter');
      await expectShown(page.getByText('Why this score').first());
      await unfold('Why this score');
      await expectShown(page.getByRole('cell', { name: 'kind: insect' }).first());
      await type(/^Text of the document/, 'Honey bees dance.');
      await click('button', 'Show');
      await expectShown(page.locator('mark').first());
    });

    test('take a search over as code', async () => {
      await click('link', name);
      await type('Query', "what's large?");
      await press('Enter');
      await expectShown(page.getByText('This search as code'));
      await unfold('This search as code');
      const command = (await page.locator('.snippet').textContent()) ?? '';
      const answer = execFileSync('sh', ['-c', command], {
        env: { ...process.env, MAXSIMD_API_KEY: stage.tenant.key },
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      expect(JSON.parse(answer)).toMatchObject({ results: [{ doc_id: expect.any(String) }, {}, {}] });
      await click('button', 'Python');
      await expect
        .poll(() => page.locator('.snippet').textContent())
        .toContain('"what\'s large?",\n    top_k=10');
    });

    test('open results in an application', async () => {
      await click('link', name);
      await type('Query', 'insects');
      await press('Enter');
      await expectShown(page.getByText('Choose what results show'));
      await unfold('Choose what results show');
      await type(/^Link/, 'javascript:alert("{doc_id}")');
      expect(await page.locator('.results a').count()).toBe(0);
      await type(/^Link/, 'https://my-app.example/docs/{doc_id}?from=search');
      const link = page.getByRole('link', { name: 'bee' });
      expect(await link.getAttribute('href')).toBe('https://my-app.example/docs/bee?from=search');
      expect(await link.getAttribute('rel')).toBe('noopener noreferrer');
      expect(await link.getAttribute('target')).toBe('_blank');
      // The choice is kept for the next visit.
      await page.reload();
      await page.getByLabel('Query').fill('insects');
      await press('Enter');
      await link.waitFor();
    });

    test('change metadata', async () => {
      await click('link', name);
      await click('link', 'Documents');
      await click('link', 'bee');
      await type('Metadata (JSON)', '{"kind":"insect","n":1.0}');
      await click('button', 'Save');
      await expectShown(page.getByText('Saved', { exact: true }));
      expect((await documentReply('bee')).text).toContain('"n":1.0}');
    });

    test('change one field of the metadata', async () => {
      await click('link', name);
      await click('link', 'Documents');
      await click('link', 'bee');
      await page.getByLabel('Saving').selectOption('metadata_merge');
      await type('Metadata (JSON)', '{"kind":null,"m":2.50}');
      await click('button', 'Save');
      await expectShown(page.getByText('Saved', { exact: true }));
      expect((await documentReply('bee')).text).toContain('"metadata":{"size":1,"m":2.50}');
      expect(await page.getByLabel('Metadata (JSON)').inputValue()).toBe('{"size":1,"m":2.50}');
    });

    test('delete a document', async () => {
      await click('link', name);
      await click('link', 'Documents');
      await click('link', 'bee');
      await click('button', 'Delete the document');
      await click('button', 'Delete');
      await expectShown(page.getByText('2 documents in 2 chunks'));
      expect([await stored('bee'), await stored('ant')]).toEqual([false, true]);
    });

    test('list what a condition matches', async () => {
      await click('link', name);
      await click('link', 'Documents');
      await expectShown(page.getByRole('link', { name: 'whale' }));
      await click('button', 'Add a condition');
      await expectShown(page.getByRole('combobox', { name: /^Field/ }));
      await page.keyboard.type('kind');
      await type('Value', 'insect');
      await press('Enter');
      await expectShown(page.getByText('2 documents match'));
      const listed = () => page.locator('tbody th').allTextContents();
      await expect.poll(listed).toEqual(['ant', 'bee']);
      await click('button', 'Remove');
      await expect.poll(listed).toEqual(['ant', 'bee', 'whale']);
    });

    test('say when a document expires', async () => {
      await click('link', name);
      await click('link', 'Documents');
      await click('link', 'bee');
      clicks += 1;
      await page.getByLabel(/^Expires/).fill('2999-12-31T23:59:58');
      await click('button', 'Save');
      await expectShown(page.getByText('Saved', { exact: true }));
      const expires_at = new Date('2999-12-31T23:59:58').toISOString();
      expect((await documentReply('bee')).body).toMatchObject({ expires_at, metadata: { kind: 'insect' } });
      await page.reload();
      await expect.poll(() => page.getByLabel(/^Expires/).inputValue()).toBe('2999-12-31T23:59:58');
    });

    test('paste documents that expire', async () => {
      await click('link', name);
      await click('link', 'Documents');
      await unfold('Add documents');
      await type(/^Or paste/, '{"doc_id":"owl","text":"Owls hunt at night."}');
      await page.getByLabel(/^Expires/).fill('2999-12-31T23:59');
      await click('button', 'Upload');
      await expectShown(page.getByText('1 of 1 document stored'));
      const expires_at = new Date('2999-12-31T23:59').toISOString();
      expect((await documentReply('owl')).body).toMatchObject({ expires_at });
    });

    test('delete by condition, after a count', async () => {
      await click('link', name);
      await click('link', 'Documents');
      // The search, which stays behind this tab, has such a button, too.
      await expectShown(page.getByRole('form', { name: 'Documents that match' }));
      await click('button', 'Add a condition');
      await expectShown(page.getByRole('combobox', { name: /^Field/ }));
      await page.keyboard.type('size');
      await type('Value', '1');
      await press('Enter');
      await expectShown(page.getByText('2 documents match'));
      await click('button', 'Delete 2 documents');
      await expectShown(page.getByText('2 documents deleted'));
      await expectShown(page.getByText('1 document in 1 chunk'));
      expect([await stored('bee'), await stored('whale')]).toEqual([false, true]);
    });

    test('rename an index', async () => {
      await click('link', name);
      await click('link', 'Settings');
      await type('Name', `${name} renamed`);
      await click('button', 'Rename');
      await expectShown(page.getByRole('heading', { name: `${name} renamed` }));
    });

    test('swap the names of two indexes', async () => {
      await click('link', name);
      await click('link', 'Settings');
      await click('button', 'Swap');
      await expect.poll(() => page.getByRole('heading', { level: 1 }).textContent()).not.toBe(name);
      const renamed = expectReply(await indexReply(), indexSchema);
      expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe(renamed.name);
      await expect.poll(() => page.getByLabel('Name', { exact: true }).inputValue()).toBe(renamed.name);
      expect(await page.getByRole('button', { name: 'Rename' }).isDisabled()).toBe(true);
    });

    test('delete an index, whose name must be written', async () => {
      await click('link', name);
      await click('link', 'Settings');
      await type(/^Write/, `${name}x`);
      expect(await page.getByRole('button', { name: 'Delete the index' }).isDisabled()).toBe(true);
      await type(/^Write/, name);
      await click('button', 'Delete the index');
      await expectShown(page.getByRole('heading', { name: 'Overview' }));
      expect((await indexReply()).status).toBe(404);
    });

    test('watch searches arrive without a reload', async () => {
      await page.clock.install();
      await page.reload();
      await expectShown(page.getByRole('link', { name }));
      await expectShown(page.getByText('No searches in the last hour').first());
      const at_10 = { mean: 0.987, low: 0.979, high: 0.993 };
      await page.route(`**/v1/indexes/${id}`, async (route) => {
        const answer = await route.fetch();
        await route.fulfill({ json: { ...(await answer.json()), recall: { at_10, searches: 40 } } });
      });
      await page.route('**/v1/activity', async (route) => {
        const answer = await route.fetch();
        await route.fulfill({ json: { ...(await answer.json()), node: 'host:7' } });
      });
      await stage.client.search(id, { query: 'bees' });
      await stage.client.search(id, { query: '' });
      await page.clock.runFor(31_000);
      const card = page.getByRole('listitem').filter({ hasText: name });
      await expectShown(card.getByText('2 searches, 1 error'));
      await expectShown(card.getByRole('region', { name: 'Last hour' }));
      const axes = await card.locator('.axes').first().locator('span').allTextContents();
      expect(axes.slice(0, 2)).toEqual(['2', '0']);
      expect(axes.slice(2).map((time) => /^\d\d:\d\d$/.test(time))).toEqual([true, true, true]);
      expect(new Set(axes.slice(2).map((time) => Number(time.slice(3)) % 30)).size).toBe(1);
      await expectShown(card.getByText('98.7%'));
      await expectShown(page.getByText('The searches are those that node host:7 answered.'));
      await page.unrouteAll();
    });

    test('a tenant without allowances sees what it has used, and no digits of limits', async () => {
      const tenant = await stage.newTenant();
      await put(tenant.client, (await makeIndex(tenant.client)).id, [{ doc_id: 'bee', text: 'Bees.' }]);
      await stage.operate('tenant', 'limits', tenant.id, '--unlimited');
      await expect
        .poll(async () => (await readUsage(tenant.client)).unlimited)
        .toEqual(['input_tokens', 'documents']);
      const free = await open({ scheme: 'light', width: 1280 });
      await signIn(free, tenant.key);
      const usage = free.getByRole('region', { name: 'Usage against limits' });
      await expect
        .poll(() => usage.textContent())
        .toMatch(/month\d+ \(unlimited\)Stored documents1 \(unlimited\)$/);
      expect(await usage.getByRole('meter').count()).toBe(0);
      await expectClosed(free);
    });

    test('a key that may only read is offered no change', async () => {
      const tenant = await stage.newTenant();
      await put(tenant.client, (await makeIndex(tenant.client, { name })).id, [
        { doc_id: 'bee', text: 'Bees.' },
      ]);
      const reading = await open({ scheme: 'light', width: 1280 });
      await signIn(reading, (await createKey(stage.server, tenant.id, '--read-only')).key);
      await reading.getByRole('link', { name }).click();
      await reading.getByRole('link', { name: 'Documents' }).click();
      await reading.getByRole('link', { name: 'bee' }).click();
      await reading.getByText('Expires').waitFor();
      expect(await reading.getByRole('button', { name: /Save|Delete|Upload/ }).count()).toBe(0);
      await reading.getByRole('link', { name: 'Settings' }).click();
      await reading.getByText('This API key may only read.').waitFor();
      expect(await reading.getByRole('button', { name: /Rename|Swap|Delete/ }).count()).toBe(0);
      await expectClosed(reading);
    });
  },
);
