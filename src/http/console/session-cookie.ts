/**
 * The cookie of a session (RFC 6265bis). Over HTTPS its name begins with `__Host-`: browsers then take it from this host
 * alone, over HTTPS alone and for all of its paths, so that no other host and no plain HTTP can plant one. Over plain
 * HTTP, where browsers refuse such a name, it is an ordinary cookie of the console's path. A request is asked
 * for the cookie of its own kind.
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

/** As the browser came: a proxy that is trusted says so. */
export function isSecure({ protocol }: Kind): boolean {
  return protocol === 'https';
}

function nameOf(request: Kind): string {
  return isSecure(request) ? '__Host-maxsimd_console' : 'maxsimd_console';
}
