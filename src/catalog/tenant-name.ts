/** What a new tenant may be called. Older catalogs may hold other names, and several tenants of one. */
import { invalid, type ServiceError } from '../errors.ts';

// Nobody sees them, and PostgreSQL cannot hold U+0000.
const unseen = /[\p{Cc}\p{Zl}\p{Zp}]/u;

/** @throws {ServiceError} `validation_error` */
export function assertTenantName(name: string): void {
  const found = unseen.exec(name)?.[0];
  if (found !== undefined) {
    const code = found.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0');
    throw invalid(
      'name',
      `the name of a tenant must not hold the control character U+${code}`,
      'control_character',
    );
  }
  if (!name.isWellFormed())
    throw invalid('name', 'the name of a tenant must be well-formed Unicode', 'invalid_unicode');
}

export function duplicateTenantName(): ServiceError {
  return invalid('name', 'a tenant with this name exists', 'duplicate');
}
