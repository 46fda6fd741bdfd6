/**
 * Why a service that this one depends on cannot be used, in words fit for anybody: they name no address, no user, and
 * quote nothing. They follow "it".
 */

import { ServiceError } from './errors.ts';

/** By code, name or message of the error. */
const reasons: readonly (readonly [pattern: RegExp, reason: string])[] = [
  [/^ECONNREFUSED$/, 'refuses connections'],
  [/^(ENOTFOUND|EAI_AGAIN)$/, 'has a name that cannot be resolved'],
  [/^(EHOSTUNREACH|ENETUNREACH)$/, 'cannot be reached by the network'],
  [
    /^(ETIMEDOUT|TimeoutError|57014)$|timeout exceeded|connection timeout|Query read timeout|timed out/,
    'does not answer in time',
  ],
  [/^(ECONNRESET|EPIPE)$|^Connection (terminated|is closed)|socket hang up/, 'closes the connection'],
  [
    /^(SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_(VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT(_LOCALLY)?))$/,
    'has a certificate of a CA that is not trusted here',
  ],
  [/^CERT_HAS_EXPIRED$/, 'has a certificate that has expired'],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'has a certificate for another host'],
  [/^(ERR_SSL_|EPROTO$)|does not support SSL connections/, 'does not speak TLS as this program does'],
  [/^28/, 'refuses the user, the password or the certificate'],
  [/^3D000$/, 'has no such database'],
  [/^42501$/, 'denies what this program must do there'],
  [/^25006$/, 'is read-only: a standby'],
  [/^53300$/, 'has no connection left'],
  [/^57P03$/, 'is starting or ending'],
  [/^55P03$/, 'has locked what is needed for too long'],
  [/^(WRONGPASS|NOAUTH|ERR AUTH)/, 'refuses the user or the password'],
  [/^NOPERM/, 'denies what this program must do there'],
  [/^LOADING/, 'is loading its data'],
  [/^(InvalidAccessKeyId|SignatureDoesNotMatch)$/, 'refuses the keys'],
  [/^CredentialsProviderError$/, 'needs keys, and none are set'],
  [/^AccessDenied$/, 'denies what this program must do there'],
  [/^NoSuchBucket$/, 'has no such bucket'],
  [/^(InternalError|InternalServerError|ServiceUnavailable|SlowDown)$/, 'answers with an error of its own'],
];

const causesMax = 5;

/** Why the error, or what caused it, came; `undefined` when it is none of these. */
export function whyAway(error: unknown): string | undefined {
  let cause = error;
  for (let depth = 0; depth < causesMax && cause instanceof Error; depth += 1, cause = cause.cause) {
    const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : '';
    for (const [pattern, reason] of reasons) {
      if ([code, cause.name, cause.message].some((words) => pattern.test(words))) return reason;
    }
  }
  return undefined;
}

/** The same error, with the reason in its message: for a start, where somebody reads it. */
export function explained(error: unknown): unknown {
  const reason = whyAway(error);
  if (!(error instanceof ServiceError) || reason === undefined) return error;
  return new ServiceError(error.code, `${error.message}: it ${reason}`, { cause: error });
}
