/**
 * The cookies of sessions (RFC 6265bis). Over HTTPS the name of the console's cookie begins with `__Host-`. Browsers take such a
 * cookie only from this host, only over HTTPS and for all paths. So no other host, and nobody on plain HTTP, can plant one.
 * Browsers refuse such a name over plain HTTP, where the cookie is an ordinary one for the console's path. A request is read
 * for the cookie of its own kind.
 *
 * Cookies do not tell ports apart. So the cookie of operators is for the path of their console alone: no browser sends it to
 * the public port.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';

type Kind = Pick<FastifyRequest, 'protocol'>;

/** A cookie by its name and place, over HTTPS and without it. */
export interface SessionCookie {
  readonly secure: { readonly name: string; readonly place: string };
  readonly plain: { readonly name: string; readonly place: string };
}

export const consoleCookie: SessionCookie = {
  secure: { name: '__Host-maxsimd_console', place: 'Path=/; Secure' },
  plain: { name: 'maxsimd_console', place: 'Path=/console' },
};

export const operatorCookie: SessionCookie = {
  secure: { name: '__Secure-maxsimd_operator', place: 'Path=/admin/console; Secure' },
  plain: { name: 'maxsimd_operator', place: 'Path=/admin/console' },
};

export function sessionIn(cookie: SessionCookie, request: FastifyRequest): string | undefined {
  const prefix = `${kindOf(cookie, request).name}=`;
  const pairs = (request.headers.cookie ?? '').split(/; */);
  return pairs.find((pair) => pair.startsWith(prefix))?.slice(prefix.length);
}

export function keepSession(
  cookie: SessionCookie,
  request: Kind,
  reply: FastifyReply,
  { session, seconds }: { readonly session: string; readonly seconds: number },
): void {
  const { name, place } = kindOf(cookie, request);
  reply.header('set-cookie', `${name}=${session}; ${place}; Max-Age=${seconds}; HttpOnly; SameSite=Strict`);
}

export function forgetSession(cookie: SessionCookie, request: Kind, reply: FastifyReply): void {
  keepSession(cookie, request, reply, { session: '', seconds: 0 });
}

/** Whether the browser spoke HTTPS. A trusted proxy reports it. */
export function isSecure({ protocol }: Kind): boolean {
  return protocol === 'https';
}

function kindOf(cookie: SessionCookie, request: Kind): SessionCookie['plain'] {
  return isSecure(request) ? cookie.secure : cookie.plain;
}
