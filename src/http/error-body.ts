/** Makes the contract's error body of a failure. It shows nothing internal. */
import type { z } from 'zod';
import { ServiceError } from '../errors.ts';
import type { Issue } from '../errors.ts';
import { dottedPath, wordsOf } from '../input/issue-words.ts';
import { cut } from '../service/repeated-names.ts';
import { issuesMax } from './limits.ts';

export const jsonContentType = 'application/json; charset=utf-8';

/** `beside`: further fields, for programs that read the errors of another service. */
export function errorBody(error: ServiceError, beside: object = {}): string {
  const { code, message, issues } = error;
  return JSON.stringify({ error: { code, message, ...(issues === undefined ? {} : { issues }) }, ...beside });
}

/** A failure of the protocol itself (413, 415, ...). The status says which, the code stays `validation_error`. */
export function protocolError(httpStatus: number, message: string, code: string): ServiceError {
  return new ServiceError('validation_error', message, { httpStatus, issues: [{ path: '', message, code }] });
}

export function internalError(cause?: unknown): ServiceError {
  return new ServiceError('internal_error', 'unexpected failure; quote the x-request-id to support', {
    cause,
  });
}

/** Where a value may be of several kinds, the issues are those of the kind that it is of. */
function issuesOfKind(issue: z.core.$ZodIssue): readonly z.core.$ZodIssue[] {
  if (issue.code !== 'invalid_union') return [issue];
  const isOfKind = ({ code, path }: z.core.$ZodIssue): boolean =>
    path.length > 0 || (code !== 'invalid_type' && code !== 'invalid_value');
  const [own, ...others] = issue.errors.filter((issues) => issues.every(isOfKind));
  if (own === undefined || others.length > 0) return [issue];
  return own.map((one) => ({ ...one, path: [...issue.path, ...one.path] }));
}

/** Validation failures of one part of a request. At most `issuesMax` of them are reported. */
export function validationError(error: z.core.$ZodError): ServiceError {
  const issues: Issue[] = [];
  for (const issue of error.issues.flatMap(issuesOfKind)) {
    if (issues.length >= issuesMax) break;
    if (issue.code === 'unrecognized_keys') {
      for (const key of issue.keys.slice(0, issuesMax - issues.length)) {
        issues.push({
          path: dottedPath([...issue.path, cut(key)]),
          message: 'unknown property',
          code: issue.code,
        });
      }
    } else {
      const code = issue.code === 'custom' ? String(issue.params?.['code'] ?? 'invalid') : issue.code;
      issues.push({ path: dottedPath(issue.path), message: wordsOf(issue), code });
    }
  }
  const [first] = issues;
  const where = first === undefined || first.path === '' ? '' : `${first.path}: `;
  return new ServiceError('validation_error', `${where}${first?.message ?? 'invalid request'}`, { issues });
}
