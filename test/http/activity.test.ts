/** The searches of the last hour: their figures, whose they are, and how many indexes may have a place. */
import { expect, it } from 'vitest';
import { RecentActivity } from '../../src/http/recent-activity.ts';
import { Activity } from '../../src/http/schemas/activity.ts';
import { startHttp } from '../support/http/http-server.ts';

function stage() {
  let nowMs = Date.parse('2026-11-27T12:00:30Z');
  const activity = new RecentActivity(() => nowMs);
  const note = (ms: number, { indexId = 'index', tenantId = 'tenant', status = 200 } = {}): void =>
    activity.note({ tenantId, indexId, status, ms });
  return { activity, note, pass: (minutes: number): void => void (nowMs += minutes * 60_000) };
}

it('counts searches and errors by minute, and forgets after an hour', () => {
  const { activity, note, pass } = stage();
  for (let ms = 1; ms <= 100; ms += 1) note(ms);
  note(5, { status: 503 });
  note(5, { status: 422 });
  pass(59);
  note(20);
  const found = activity.of('tenant', 'index');
  expect(found.minutes).toHaveLength(60);
  expect(found.minutes[0]).toMatchObject({ searches: 102, errors: 2 });
  expect(found.minutes[1]).toEqual({ searches: 0, errors: 0, p50_ms: null, p99_ms: null });
  expect(found.minutes[59]).toMatchObject({ searches: 1, errors: 0 });
  expect(found.hour).toMatchObject({ searches: 103, errors: 2 });
  expect(new Date(activity.fromMs()).toISOString()).toBe('2026-11-27T12:00:00.000Z');
  pass(1);
  expect(activity.of('tenant', 'index').hour).toMatchObject({ searches: 1, errors: 0 });
  pass(60);
  expect(activity.indexesOf('tenant')).toEqual([]);
});

it.each([0.4, 0.5, 3, 47, 900, 31_000])('a latency of %d ms is within a tenth', (ms) => {
  const { activity, note } = stage();
  note(ms);
  const { p50_ms: p50, p99_ms: p99 } = activity.of('tenant', 'index').hour;
  expect(p50).toBe(p99);
  if (ms > 0.5) expect(Math.abs(Number(p50) / ms - 1)).toBeLessThan(0.1);
  else expect(p50).toBeLessThanOrEqual(0.5);
});

it('p50 and p99 are those of the answers', () => {
  const { activity, note } = stage();
  for (let at = 0; at < 98; at += 1) note(10);
  note(1_000);
  note(1_000);
  const { p50_ms: p50, p99_ms: p99 } = activity.of('tenant', 'index').hour;
  expect(Math.abs(Number(p50) / 10 - 1)).toBeLessThan(0.1);
  expect(Math.abs(Number(p99) / 1_000 - 1)).toBeLessThan(0.1);
});

it('keeps the thousand indexes that were searched last', () => {
  const { activity, note } = stage();
  for (let at = 0; at < 1_001; at += 1) note(1, { indexId: `index-${at}` });
  const kept = activity.indexesOf('tenant');
  expect(kept).toHaveLength(1_000);
  expect(kept).not.toContain('index-0');
});

it('a refused request gives no index a place, and changes no figure of another tenant', () => {
  const { activity, note } = stage();
  note(1, { indexId: 'unknown', status: 404 });
  note(1, { indexId: 'mine' });
  note(1, { indexId: 'mine', tenantId: 'other', status: 422 });
  expect(activity.indexesOf('other')).toEqual([]);
  expect(activity.indexesOf('tenant')).toEqual(['mine']);
  expect(activity.of('tenant', 'mine').hour.errors).toBe(0);
});

it('the route answers what was searched, and names the node', async () => {
  await using http = await startHttp({ node: 'host:7' });
  const id = await http.createIndex();
  const search = { method: 'POST', payload: { query: 'tide' } } as const;
  await http.inject({ ...search, url: `/v1/indexes/${id.toUpperCase()}/search` });
  await http.inject({ ...search, url: `/v1/indexes/${id}/search`, payload: { query: '' } });
  await http.inject({ ...search, url: '/v1/indexes/3f2504e0-4f89-41d3-9a0c-0305e82c3301/search' });
  // A name counts for the index that has it, and one that was not resolved gets no place.
  await http.inject({ ...search, url: `/v1/indexes/name:of%20nobody/search` });
  await http.inject({ ...search, url: `/v1/indexes/name:of%20nobody/search`, payload: { query: '' } });
  const { name } = (await http.inject({ url: `/v1/indexes/${id}` })).json<{ name: string }>();
  await http.inject({ ...search, url: `/v1/indexes/${encodeURIComponent(`name:${name}`)}/search` });
  const activity = Activity.parse((await http.inject({ url: '/v1/activity' })).json());
  expect(activity.node).toBe('host:7');
  expect(activity.data).toMatchObject([{ index_id: id, hour: { searches: 3, errors: 1 } }]);
  expect(activity.data[0]?.minutes.reduce((sum, { searches }) => sum + searches, 0)).toBe(3);
});
