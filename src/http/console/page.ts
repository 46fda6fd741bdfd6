/**
 * The files of the console (`src/console`), which are read once. Two listeners serve them: the public one for tenants, and the
 * admin one for operators. All addresses in them are relative, because a proxy may have put the service behind a path.
 *
 * Against cross-site requests the cookies are `SameSite=Strict`, and a request that a browser marks as coming from another
 * origin is refused (Fetch Metadata, w3.org/TR/fetch-metadata). Browsers that send no such marks ask before they send JSON, or
 * a method other than GET and POST, to another origin. The service does not answer them.
 */
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { ServiceError } from '../../errors.ts';
import { isSecure } from './session-cookie.ts';

export interface PageFile {
  readonly type: string;
  readonly bytes: Buffer;
}

export type ConsolePage = ReadonlyMap<string, PageFile>;

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Half a year in seconds, without subdomains, which may belong to others (RFC 6797). */
const strictTransport = 'max-age=15552000';
const pageHeaders = {
  'content-security-policy':
    "default-src 'none'; connect-src 'self'; img-src 'self'; script-src 'self'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

export async function readConsolePage(directory: string): Promise<ConsolePage> {
  const names = (await readdir(directory)).filter((name) => path.extname(name) in types);
  const files = names.map(async (name): Promise<[string, PageFile]> => {
    const bytes = await readFile(path.join(directory, name));
    return [name, { type: types[path.extname(name)]!, bytes }];
  });
  return new Map(await Promise.all(files));
}

/** Serves the page at the prefix of `app`, and refuses what comes from another origin on all routes of `app`. */
export function servePage(app: FastifyInstance, page: ConsolePage, audience: 'tenants' | 'operators'): void {
  app.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store');
    if (isSecure(request)) reply.header('strict-transport-security', strictTransport);
    const { headers } = request;
    const site = headers['sec-fetch-site'];
    const isNavigation = request.method === 'GET' && headers['sec-fetch-mode'] === 'navigate';
    if (site !== undefined && site !== 'same-origin' && !isNavigation) throw foreignOrigin();
  });
  const send = (file: PageFile) => async (_request: unknown, reply: FastifyReply) =>
    reply.headers(pageHeaders).type(file.type).send(file.bytes);
  for (const [name, file] of page) {
    if (name !== 'index.html') {
      app.get(`/${name}`, send(file));
      continue;
    }
    const inFolder = replaced(file, 'data-audience="tenants"', `data-audience="${audience}"`);
    app.get('/', { prefixTrailingSlash: 'slash' }, send(inFolder));
    // Without the slash at the end, a browser looks for the page's files beside `/console`, not in it.
    const besideFolder = replaced(inFolder, '"./', `"${path.basename(app.prefix)}/`);
    app.get('/', { prefixTrailingSlash: 'no-slash' }, send(besideFolder));
  }
}

function replaced({ type, bytes }: PageFile, from: string, to: string): PageFile {
  return { type, bytes: Buffer.from(bytes.toString().replaceAll(from, to)) };
}

function foreignOrigin(): ServiceError {
  return new ServiceError('not_found', 'the console answers only its own page');
}
