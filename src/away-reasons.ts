/**
 * The reasons why PostgreSQL, Redis or the object store cannot be used. Anybody may read them: they name no address and no
 * user, and quote nothing. They follow the word "it".
 */

import { ServiceError } from './errors.ts';
import { hasCode } from './system-errors.ts';

/** Codes of answers of an object store. The message has the status and the code of the answer, for operators alone. */
export const storeCodes = {
  refuses: 'ERR_STORE_REFUSES',
  fails: 'ERR_STORE_FAILS',
  wrong: 'ERR_STORE_WRONG',
} as const;

interface Reason {
  /** Compared with code, name and message of the error. */
  readonly pattern: RegExp;
  readonly reason: string;
  /** The service answers, and refuses this program because of its configuration or its state. */
  readonly isRefusal?: true;
  /** It may pass by itself within seconds, as during a failover. */
  readonly mayPass?: boolean;
}

const refusals: readonly Reason[] = [
  {
    pattern:
      /^(SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_(VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT(_LOCALLY)?))$/,
    reason: 'has a certificate of an authority that this program does not trust',
  },
  { pattern: /^CERT_HAS_EXPIRED$/, reason: 'has a certificate that has expired' },
  { pattern: /^ERR_TLS_CERT_ALTNAME_INVALID$/, reason: 'has a certificate for another host' },
  {
    pattern: /^(ERR_SSL_|EPROTO$)|does not support SSL connections/,
    reason: 'does not speak TLS',
  },
  {
    pattern: /^(28|SASL authentication failed)/,
    reason: 'refuses the user, the password, the certificate, or a connection without TLS',
  },
  {
    pattern:
      /^(3D000$|database "[^"]+" does not exist|ERR (DB index is out of range|SELECT is not allowed in cluster mode))/,
    reason: 'has no such database',
  },
  { pattern: /^(WRONGPASS|NOAUTH|ERR AUTH)/, reason: 'refuses the user or the password' },
  { pattern: /^DENIED\b/, reason: 'is in protected mode, and takes connections of its own host alone' },
  {
    pattern: /^(InvalidAccessKeyId|SignatureDoesNotMatch|InvalidToken|ExpiredToken)$/,
    reason: 'refuses the keys',
  },
  { pattern: /^RequestTimeTooSkewed$/, reason: 'has a clock that differs too much from this one' },
  { pattern: /^(PermanentRedirect|AuthorizationHeaderMalformed)$/, reason: 'is in another region' },
  { pattern: /^CredentialsProviderError$/, reason: 'needs keys, and none are set' },
  { pattern: /^NoSuchBucket$/, reason: 'has no such bucket' },
  { pattern: /^ERR unknown command/, reason: 'lacks a command that this program needs, such as EVALSHA' },
  {
    pattern:
      /^(42501$|AccessDenied$|NOPERM|ERR ACL failure in script|(ERR )?The user executing the script can't run)/,
    reason: 'denies this program a permission that it needs',
  },
  { pattern: /^(READONLY|MASTERDOWN)\b/, reason: 'is read-only: a replica', mayPass: true },
  {
    pattern: /^(OOM|MISCONF)\b/,
    reason: 'takes no more writes: its memory or its disk is full',
    mayPass: true,
  },
  {
    pattern: /^unsupported startup parameter/,
    reason: 'does not accept the settings of a connection: a pooler?',
  },
  {
    pattern: /^(42P05|26000)$|^two connections have one session$/,
    reason: 'shares sessions between clients: a pooler in transaction mode',
  },
  {
    pattern: /^transaction blocks not allowed/,
    reason: 'allows no transactions: a pooler in statement mode',
  },
  { pattern: new RegExp(`^${storeCodes.refuses}$`), reason: 'answers, and refuses this request' },
  { pattern: new RegExp(`^${storeCodes.wrong}$`), reason: 'answers otherwise than an object store' },
].map((refusal) => ({ ...refusal, isRefusal: true }));

const outages: readonly Reason[] = [
  { pattern: /^ECONNREFUSED$/, reason: 'refuses connections' },
  { pattern: /^(ENOTFOUND|EAI_AGAIN)$/, reason: 'has a name that cannot be resolved' },
  { pattern: /^(EHOSTUNREACH|ENETUNREACH)$/, reason: 'cannot be reached by the network' },
  {
    pattern:
      /^(ETIMEDOUT|TimeoutError|57014)$|timeout exceeded|connection timeout|Query read timeout|timed out|^no answer for/,
    reason: 'does not answer in time',
  },
  {
    pattern: /^(ECONNRESET|EPIPE)$|^Connection (terminated|is closed)|socket hang up/,
    reason: 'closes the connection',
  },
  { pattern: /^25006$/, reason: 'is read-only: a standby' },
  { pattern: /^(53300$|no more connections allowed)/, reason: 'has no connection left' },
  { pattern: /^57P03$/, reason: 'is starting or ending' },
  { pattern: /^55P03$/, reason: 'keeps a lock for too long' },
  { pattern: /^NOREPLICAS\b/, reason: 'has too few replicas to take writes' },
  { pattern: /^CLUSTERDOWN/, reason: 'is a cluster in which no node serves the keys' },
  { pattern: /^(CROSSSLOT|MOVED|ASK|TRYAGAIN)\b/, reason: 'is a cluster that has the keys elsewhere' },
  { pattern: /^LOADING/, reason: 'is loading its data' },
  {
    pattern: new RegExp(
      `^(InternalError|InternalServerError|ServiceUnavailable|SlowDown|${storeCodes.fails})$`,
    ),
    reason: 'answers with an error of its own',
  },
];

const reasons = [...refusals, ...outages];
const causesMax = 5;

/** Redis 6.2 puts this before the error that a script met. */
const ofScript = /^ERR Error running script .*: @user_script: \d+: -?/;

/** The reason of an error or of its causes; `undefined` if it is none of these. */
export function whyAway(error: unknown): string | undefined {
  return reasonOf(error)?.reason;
}

/** Whether the service answers and refuses this program, because of its configuration or its state. */
export function isRefusal(error: unknown): boolean {
  return reasonOf(error)?.isRefusal === true;
}

/** Whether such a refusal may pass by itself within seconds. */
export function mayPass(error: unknown): boolean {
  return reasonOf(error)?.mayPass === true;
}

function reasonOf(error: unknown): (Reason & { readonly cause: Error }) | undefined {
  let cause = error;
  for (let depth = 0; depth < causesMax && cause instanceof Error; depth += 1, cause = cause.cause) {
    const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : '';
    const words = [code, cause.name, cause.message.replace(ofScript, '')];
    const reason = reasons.find(({ pattern }) => words.some((word) => pattern.test(word)));
    if (reason !== undefined) return { ...reason, cause };
  }
  return undefined;
}

/** The same error with the reason in its message, and with the answer of an object store, for a person who starts the service. */
export function explained(error: unknown): unknown {
  const reason = reasonOf(error);
  if (!(error instanceof ServiceError) || reason === undefined) return error;
  const answer = hasCode(reason.cause, ...Object.values(storeCodes)) ? ` (${reason.cause.message})` : '';
  return new ServiceError(error.code, `${error.message}: it ${reason.reason}${answer}`, { cause: error });
}
