/**
 * Dates, as people and programs write them: `2026-11-27`, which means 00:00 UTC, or with a time, such as `2026-11-27T09:30:00Z`.
 * Before the time stands `T` or a space. Seconds may be missing, or have a fraction. The offset is `Z`, `UTC`, `+01:00`, `+0100`
 * or `+01`, with or without a space before it, and without any it is UTC. Anything else is no date. RFC 3339 and the usual forms
 * of ISO 8601 are among these, and the texts that Python, PostgreSQL and others make of a time.
 *
 * The engine reads the dates of documents and of conditions in the same way (native/values/json_values.cpp).
 */

const dateTime =
  /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?(?: ?(?:[Zz]|UTC|([-+])(\d\d)(?::?(\d\d))?))?)?$/;
const daySeconds = 86_400;

/** Nanoseconds since the epoch. Further digits are cut off. A leap second is the first second of the next day. */
export function instantOf(text: string): bigint | undefined {
  const match = dateTime.exec(text);
  if (match === null) return undefined;
  const numberAt = (group: number): number => Number(match[group] ?? 0);
  const [year, month, day] = [numberAt(1), numberAt(2), numberAt(3)];
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  const [hour, minute, second] = [numberAt(4), numberAt(5), numberAt(6)];
  const [offsetHour, offsetMinute] = [numberAt(9), numberAt(10)];
  if (hour > 23 || minute > 59 || second > 60 || offsetHour > 23 || offsetMinute > 59) return undefined;
  const offset = (offsetHour * 60 + offsetMinute) * (match[8] === '-' ? -60 : 60);
  const seconds = date.getTime() / 1_000 + hour * 3_600 + minute * 60 + second - offset;
  if (second === 60 && seconds % daySeconds !== 0) return undefined;
  const nanoseconds = (match[7] ?? '').slice(0, 9).padEnd(9, '0');
  return BigInt(seconds) * 1_000_000_000n + BigInt(nanoseconds);
}

/** No date is before the first or after the second. */
export const instantBounds = [
  instantOf('0000-01-01T00:00:00+23:59'),
  instantOf('9999-12-31T23:59:59.999999999-23:59'),
] as readonly [bigint, bigint];
