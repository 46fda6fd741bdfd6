/** Bodies and answers of the admin API. */
import { z } from 'zod';
import { keyNameLengthMax } from '../../service/administration.ts';
import { unlimitedAllowances } from '../../service/limits/unlimited.ts';
import { addIssue, codePointString, Count, DecimalString, Name, Timestamp } from '../schemas/fields.ts';
import { CreationCursor, Limit, NextCursor, NumberCursor } from '../schemas/pages.ts';
import { TenantLimits, Unlimited, UsageCounts } from '../schemas/usage.ts';

/** Other texts name nothing, and PostgreSQL would refuse some of them. */
const Identifier = z.string().superRefine((text, context) => {
  if (/^[\x21-\x7e]+$/.test(text)) return;
  addIssue(context, 'invalid', 'must be an identifier: visible ASCII characters');
});

export const TenantParams = z.strictObject({
  tenant_id: Identifier.toLowerCase().meta({ description: 'Identifier of the tenant.' }),
});
export const KeyParams = z.strictObject({
  key_id: Identifier.meta({ description: 'Identifier of the key, which is no secret.' }),
});

const LimitChanges = z
  .strictObject({
    requests_per_minute: z.int().min(1).optional(),
    max_concurrent_requests: z.int().min(1).optional(),
    input_tokens: DecimalString.refine(
      (text) => BigInt(text) <= unlimitedAllowances.inputTokens,
      'must be below 2^63',
    )
      .optional()
      .meta({ description: `\`${unlimitedAllowances.inputTokens}\` = no limit.` }),
    documents: Count.optional().meta({ description: `${unlimitedAllowances.documents} = no limit.` }),
  })
  .meta({ id: 'LimitChanges', description: 'Limits that are absent keep their values.' });

export const CreateTenantBody = z
  .strictObject({
    name: Name.meta({
      description: 'A name for people. Unique, without control characters.',
      example: 'acme',
    }),
    limits: LimitChanges.optional().meta({ description: 'Limits that differ from the defaults.' }),
  })
  .meta({ id: 'CreateTenant' });

export const UpdateTenantBody = z
  .strictObject({
    suspended: z.boolean().optional().meta({ description: 'If true, all requests of the tenant are 403.' }),
    limits: LimitChanges.optional(),
  })
  .superRefine(({ suspended, limits }, context) => {
    if ((suspended === undefined) === (limits === undefined))
      addIssue(context, 'invalid', 'must have either suspended or limits');
  })
  .meta({ id: 'UpdateTenant', description: 'Exactly one of the two fields.' });

export const TenantListQuery = z.strictObject({ limit: Limit, cursor: CreationCursor });

export const Tenant = z
  .strictObject({
    tenant_id: z.string(),
    name: z.string(),
    suspended: z.boolean(),
    limits: TenantLimits,
    unlimited: Unlimited,
    created_at: Timestamp,
  })
  .meta({ id: 'Tenant' });

export const TenantInUse = z
  .strictObject({
    ...Tenant.shape,
    memory_bytes: z.int().nonnegative().meta({
      description:
        'Memory that the search engine of this process has for the open indexes of the tenant. Of several nodes each says its own.',
    }),
  })
  .meta({ id: 'TenantInUse' });

const ListedTenant = z
  .strictObject({
    ...Tenant.shape,
    usage: UsageCounts.meta({
      description: 'Usage of this month in UTC, and the documents that are stored now.',
    }),
  })
  .meta({ id: 'ListedTenant' });

export const TenantList = z
  .strictObject({ data: z.array(ListedTenant), next_cursor: NextCursor })
  .meta({ id: 'TenantList' });

const ApiKeyText = z.string().meta({ description: 'The secret. It is shown only once.' });

export const CreatedTenant = z
  .strictObject({ ...Tenant.shape, key_id: z.string(), api_key: ApiKeyText })
  .meta({ id: 'CreatedTenant' });

export const DeletedTenant = z
  .strictObject({ deleted: z.literal(true), indexes: Count })
  .meta({ id: 'DeletedTenant' });

const Access = z
  .enum(['full', 'read'])
  .meta({ description: 'A `read` key gets 403 for requests that change or delete something.' });

const keyLimitText =
  'A limit of this key. The limit of its tenant holds as well. Absent: that of the tenant alone.';

export const CreateKeyBody = z
  .strictObject({
    name: codePointString(keyNameLengthMax)
      .meta({ minLength: 1, maxLength: keyNameLengthMax })
      .nullish()
      .meta({
        description:
          'A name for people, such as that of the program which has the key. Need not be unique, without control characters.',
        example: 'nightly import',
      }),
    access: Access.optional().meta({ description: 'Default `full`.' }),
    requests_per_minute: z.int().min(1).optional().meta({ description: keyLimitText }),
    max_concurrent_requests: z.int().min(1).optional().meta({ description: keyLimitText }),
  })
  .meta({ id: 'CreateKey' });

export const Key = z
  .strictObject({
    key_id: z.string(),
    tenant_id: z.string(),
    name: z.string().nullable(),
    access: Access,
    requests_per_minute: z.int().nullable(),
    max_concurrent_requests: z.int().nullable(),
    created_at: Timestamp,
    revoked_at: Timestamp.nullable(),
    last_used_at: Timestamp.nullable().meta({
      description:
        'A request with the key, or with a session of it. The last one was at most an hour later. Null: none is known.',
    }),
  })
  .meta({ id: 'Key' });

export const KeyList = z.strictObject({ data: z.array(Key) }).meta({ id: 'KeyList' });
export const CreatedKey = z.strictObject({ ...Key.shape, api_key: ApiKeyText }).meta({ id: 'CreatedKey' });

export const AuditQuery = z.strictObject({
  tenant_id: TenantParams.shape.tenant_id.optional().meta({ description: 'Only entries about this tenant.' }),
  limit: Limit,
  cursor: NumberCursor,
});

const AuditEntry = z
  .strictObject({
    id: Count,
    at: Timestamp,
    actor: z.string().meta({
      description:
        'Who did it: `operator:DIGEST` (the first 16 characters of the SHA-256 of the operator’s key), `cli:USER` (the command line), or `server` (refused logins).',
    }),
    act: z.string().meta({ example: 'tenant_created' }),
    tenant_id: z.string().nullable(),
    tenant_name: z
      .string()
      .nullable()
      .meta({ description: 'Name of the tenant now. Null: it was erased, or the act is about none.' }),
    detail: z.record(z.string(), z.unknown()).meta({ type: 'object', additionalProperties: true }),
  })
  .meta({ id: 'AuditEntry' });

export const AuditList = z
  .strictObject({ data: z.array(AuditEntry), next_cursor: NextCursor })
  .meta({ id: 'AuditList' });
