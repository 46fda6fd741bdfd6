/** The route that lists the documents of a condition: its fields, and the call of the service that it makes. */
import { expect, it } from 'vitest';
import { startHttp } from '../support/http/http-server.ts';

it('hands over condition, fields, limit and place, and refuses everything else', async () => {
  await using http = await startHttp();
  const url = `/v1/indexes/${await http.createIndex()}/documents/list`;
  const ask = (payload: object) => http.inject({ method: 'POST', url, payload });
  const handedOver = async (payload: object) => {
    expect((await ask(payload)).statusCode).toBe(200);
    return http.service.calls.findLast(({ name }) => name === 'listDocuments')?.arguments[1];
  };
  expect(await handedOver({})).toEqual({ limit: 100 });
  const place = { cursor: Buffer.from('é/💥').toString('base64url') };
  const wanted = { where: '{"n":1}', fields: ['n'], limit: 7, after: 'é/💥' };
  expect(await handedOver({ where: { n: 1 }, fields: ['n'], limit: 7, ...place })).toEqual(wanted);
  expect(await handedOver({ fields: [], limit: 1000 })).toEqual({ fields: [], limit: 1000 });

  for (const [payload, path, code] of [
    [{ limit: 0 }, 'limit', 'too_small'],
    [{ limit: 1001 }, 'limit', 'too_big'],
    [{ limit: '1' }, 'limit', 'invalid_type'],
    [{ cursor: '*' }, 'cursor', 'invalid_cursor'],
    [{ cursor: null }, 'cursor', 'invalid_type'],
    [{ fields: ['a', 'a'] }, 'fields.1', 'duplicate'],
    [{ fields: Array.from('abcdefghijk') }, 'fields', 'too_big'],
    [{ fields: 'a' }, 'fields', 'invalid_type'],
    [{ where: 'n' }, 'where', 'invalid_type'],
    [{ filter: { n: 1 } }, 'filter', 'unrecognized_keys'],
  ] as const) {
    const answer = await ask(payload);
    expect(answer.statusCode).toBe(422);
    expect(answer.json()).toMatchObject({ error: { code: 'validation_error', issues: [{ path, code }] } });
  }
});
