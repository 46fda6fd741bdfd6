/**
 * The cookies of sessions (RFC 6265bis). Over HTTPS the name of the console's cookie begins with `__Host-`. Browsers take such a
 * cookie only from this host, only over HTTPS and for all paths. So no other host, and nobody on plain HTTP, can plant one.
 * Browsers refuse such a name over plain HTTP, where the cookie is an ordinary one for the console's path. A request is read
 * for the cookie of its own kind.
 *
 * A cookie without `Path` is for the folder of the address that set it. That address ends with `/console/session`, so the
 * cookie is for the console, also where a proxy has put a path before it that the service does not know.
 *
 * Cookies do not tell ports apart. So the cookie of operators is for the path of their console alone: no browser sends it to
 * the public port.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';

type Kind = Pick<FastifyRequest, 'protocol'>;

interface NamedCookie {
  readonly name: string;
  readonly attributes: readonly string[];
}

/** A cookie over HTTPS, and without it. */
export interface SessionCookie {
  readonly secure: NamedCookie;
  readonly plain: NamedCookie;
}

export const consoleCookie: SessionCookie = {
  secure: { name: '__Host-maxsimd_console', attributes: ['Path=/', 'Secure'] },
  plain: { name: 'maxsimd_console', attributes: [] },
};

export const operatorCookie: SessionCookie = {
  secure: { name: '__Secure-maxsimd_operator', attributes: ['Secure'] },
  plain: { name: 'maxsimd_operator', attributes: [] },
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
  const { name, attributes } = kindOf(cookie, request);
  const all = [`${name}=${session}`, ...attributes, `Max-Age=${seconds}`, 'HttpOnly', 'SameSite=Strict'];
  reply.header('set-cookie', all.join('; '));
}

export function forgetSession(cookie: SessionCookie, request: Kind, reply: FastifyReply): void {
  keepSession(cookie, request, reply, { session: '', seconds: 0 });
}

/** Whether the browser spoke HTTPS. A trusted proxy reports it. */
export function isSecure({ protocol }: Kind): boolean {
  return protocol === 'https';
}

function kindOf(cookie: SessionCookie, request: Kind): NamedCookie {
  return isSecure(request) ? cookie.secure : cookie.plain;
}
