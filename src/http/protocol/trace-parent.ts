/** The caller's span in a distributed trace, from the header `traceparent` (W3C Trace Context, level 1). */
import type { IncomingHttpHeaders } from 'node:http';

export interface TraceParent {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits: the caller's span. */
  readonly spanId: string;
  readonly isSampled: boolean;
}

/** Version, trace, span, flags. Later versions may have more fields, version 00 may not (section 3.2). */
const pattern =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?<more>-.*)?$/;

/** `undefined` without a valid header. The trace then begins here. */
export function traceParentOf({ traceparent }: IncomingHttpHeaders): TraceParent | undefined {
  if (typeof traceparent !== 'string') return undefined;
  const match = pattern.exec(traceparent);
  if (match === null) return undefined;
  const [, version, traceId = '', spanId = '', flags = ''] = match;
  if (version === '00' && match.groups?.['more'] !== undefined) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
