/**
 * Checks of what both catalogs store. Catalogs of earlier releases may hold other names of tenants, and several tenants of
 * one name.
 */
import type { CommitUpsertInput, UsageEvent } from '../contracts/document-commits.ts';
import { assertInvariant, invalid, type ServiceError } from '../errors.ts';
import { keyNameLengthMax } from './contract.ts';

// These characters are invisible, and PostgreSQL cannot hold U+0000.
const unseen = /[\p{Cc}\p{Zl}\p{Zp}]/u;

/** @throws {ServiceError} `validation_error` */
export function assertTenantName(name: string): void {
  assertPlain('tenant', name);
}

/** @throws {ServiceError} `validation_error` */
export function assertKeyName(name: string | undefined): void {
  if (name === undefined) return;
  assertPlain('key', name);
  if (name === '') throw invalid('name', 'the name of a key must not be empty', 'too_small');
  if (Array.from(name).length > keyNameLengthMax) {
    const most = `the name of a key must have at most ${keyNameLengthMax} code points`;
    throw invalid('name', most, 'too_big');
  }
}

function assertPlain(owner: 'tenant' | 'key', name: string): void {
  const found = unseen.exec(name)?.[0];
  if (found !== undefined) {
    const code = found.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0');
    throw invalid(
      'name',
      `the name of a ${owner} must not hold the control character U+${code}`,
      'control_character',
    );
  }
  if (!name.isWellFormed())
    throw invalid('name', `the name of a ${owner} must be well-formed Unicode`, 'invalid_unicode');
}

export function duplicateTenantName(): ServiceError {
  return invalid('name', 'a tenant with this name exists', 'duplicate');
}

const monthPattern = /^\d{4}-(?:0[1-9]|1[0-2])$/;

/** `writerId`: the tenant that writes. */
export function assertUsage({ month, tenantId }: UsageEvent, writerId = tenantId): void {
  assertInvariant(tenantId === writerId, 'usage is charged to the tenant that writes');
  assertInvariant(monthPattern.test(month), `${month} is not a month`);
}

/** A lone surrogate has no UTF-8 form: the database would store the name of another document. */
export function assertDocId(docId: string): void {
  if (!docId.isWellFormed()) throw invalid('doc_id', 'is not well-formed Unicode');
}

export function assertUpsert({ documents, usage, tenantId }: CommitUpsertInput): void {
  assertInvariant(documents.length > 0, 'an upsert commits at least one document');
  const docIds = new Set(documents.map(({ docId }) => docId));
  assertInvariant(docIds.size === documents.length, 'doc ids of one upsert are unique');
  assertUsage(usage, tenantId);
  for (const docId of docIds) assertDocId(docId);
}
