/**
 * The cookie of a session (RFC 6265bis). Over HTTPS its name begins with `__Host-`. Browsers take such a cookie only from this
 * host, only over HTTPS and for all paths. So no other host, and nobody on plain HTTP, can plant one. Browsers refuse such a
 * name over plain HTTP, where the cookie is an ordinary one for the console's path. A request is read for the cookie of its
 * own kind.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';

type Kind = Pick<FastifyRequest, 'protocol'>;

export function sessionIn(request: FastifyRequest): string | undefined {
  const prefix = `${nameOf(request)}=`;
  const pairs = (request.headers.cookie ?? '').split(/; */);
  return pairs.find((pair) => pair.startsWith(prefix))?.slice(prefix.length);
}

export function keepSession(request: Kind, reply: FastifyReply, session: string, seconds: number): void {
  const place = isSecure(request) ? 'Path=/; Secure' : 'Path=/console';
  const cookie = `${nameOf(request)}=${session}; ${place}; Max-Age=${seconds}; HttpOnly; SameSite=Strict`;
  reply.header('set-cookie', cookie);
}

export function forgetSession(request: Kind, reply: FastifyReply): void {
  keepSession(request, reply, '', 0);
}

/** Whether the browser spoke HTTPS. A trusted proxy reports it. */
export function isSecure({ protocol }: Kind): boolean {
  return protocol === 'https';
}

function nameOf(request: Kind): string {
  return isSecure(request) ? '__Host-maxsimd_console' : 'maxsimd_console';
}
