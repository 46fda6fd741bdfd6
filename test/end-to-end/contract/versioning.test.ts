/** "Versioning", and the OpenAPI document that describes the interface. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';

import { describe, expect, test } from 'vitest';

import { call, expectError } from '../../support/running/client.ts';
import { readOpenApi } from '../../support/running/openapi.ts';
import { repositoryRoot } from '../../support/running/launch.ts';
import { useContractStage } from '../../support/stages/contract-stage.ts';

const stage = await useContractStage();

/** Method and path of every endpoint that the specification names. */
const specified = [
  ['get', '/healthz'],
  ['get', '/readyz'],
  ['post', '/v1/indexes'],
  ['get', '/v1/indexes'],
  ['post', '/v1/indexes/{index_id}/documents'],
  ['delete', '/v1/indexes/{index_id}/documents/{doc_id}'],
  ['post', '/v1/indexes/{index_id}/search'],
  ['post', '/v1/score'],
  ['get', '/v1/usage'],
] as const;

describe('Versioning', () => {
  test('[versioning-1] The API is versioned in the path under `/v1`. The interface description carries version `0.1.0-alpha`.', async () => {
    const document = await readOpenApi(stage.server.url);
    expect(document.openapi).toMatch(/^3\.1\./);
    expect(document.info.version).toBe('0.1.0-alpha');
    for (const [method, route] of specified) {
      expect(Object.keys(document.paths[route] ?? {}), `${method} ${route}`).toContain(method);
    }
    for (const route of Object.keys(document.paths)) {
      // `/` and the shape of other products' SDKs are additions of ours.
      expect(route).toMatch(/^\/(v1\/.*|healthz|readyz|openapi\.json|docs|rerank|v2\/rerank)?$/);
    }
    expectError(await stage.client.send('GET', '/indexes'), 404, 'not_found');
    expectError(await stage.client.send('GET', '/v0/indexes'), 404, 'not_found');
  });

  test('[decision-26] additions of ours are marked as such in the OpenAPI document', async () => {
    const document = await readOpenApi(stage.server.url);
    const names = new Set(specified.map(([method, route]) => `${method} ${route}`));
    for (const [route, operations] of Object.entries(document.paths)) {
      for (const [method, operation] of Object.entries(operations)) {
        const mark = (operation as Readonly<Record<string, unknown>>)['x-maxsimd-addition'];
        expect(mark === true, `${method} ${route}`).toBe(!names.has(`${method} ${route}` as never));
      }
    }
  });

  test('[decision-25] interactive docs that need no internet', async () => {
    const page = await docsPage();
    expect(page.text).toMatch(/<html/i);
    const sources = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] ?? '');
    expect(sources.length).toBeGreaterThan(0);
    for (const source of sources) {
      expect(source).not.toMatch(/^(https?:)?\/\//);
      expect((await call(new URL(source, page.address).href)).status).toBe(200);
    }
  });

  test('[versioning-2] Clients ignore unknown response fields, so fields may be added.', async () => {
    // Schemas of responses forbid nothing, schemas of requests do.
    const text = JSON.stringify(await readOpenApi(stage.server.url));
    expect(text).toContain('"additionalProperties":false');
  });

  test('[versioning-3] Partner-impacting changes are recorded in a changelog.', async () => {
    const changelog = await readFile(path.join(repositoryRoot, 'CHANGELOG.md'), 'utf8');
    expect(changelog).toContain('0.1.0-alpha');
  });

  test('[versioning-5] Deprecation and compatibility policy beyond these points: not shown.', async () => {
    // Nothing is deprecated in the first version.
    expect(JSON.stringify(await readOpenApi(stage.server.url))).not.toContain('"deprecated":true');
  });
});

/** The interactive documentation, wherever its start page redirects to. */
async function docsPage(): Promise<{ readonly text: string; readonly address: string }> {
  const start = `${stage.server.url}/docs`;
  const reply = await call(start);
  const location = reply.headers.get('location');
  const address = new URL(location ?? '', start).href;
  const { text } = location === null ? reply : await call(address);
  return { text, address };
}
