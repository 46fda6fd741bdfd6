/**
 * The admin API. It has a listener of its own, so that tenants cannot reach the routes of operators. An operator's key allows
 * every route. The limits of tenants do not apply.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { LocalAdministration } from '../../service/administration.ts';
import { ServiceError } from '../../errors.ts';
import { unknownRoute } from '../admission.ts';
import { createApp, type ListenerOptions } from '../app.ts';
import type { ConsolePage } from '../console/page.ts';
import { smallBodyBytes } from '../body/gather.ts';
import { KnownConnections } from '../protocol/known-connections.ts';
import { defaultHttpTimeouts } from '../protocol/listener.ts';
import { describeApi, type ApiDocument } from '../schemas/openapi.ts';
import { operatorConsole } from './console.ts';
import { refusedKeyDigest, type OperatorKeys } from './operator-keys.ts';
import { RefusedLogins, type RefusedLoginDetail } from './refused-logins.ts';
import { adminRoutes, type MemoryBytesOf } from './routes.ts';

export interface AdminServerOptions extends ListenerOptions {
  /** The administration for an operator, by the name in the audit log. */
  readonly administrationOf: (operator: string) => LocalAdministration;
  readonly memoryBytesOf: MemoryBytesOf;
  readonly noteRefusedLogin: (detail: RefusedLoginDetail) => Promise<void>;
  readonly operators: OperatorKeys;
  /** The page of the console; absent = none is served. */
  readonly page?: ConsolePage;
}

/** Shorter than for tenants: operators are near, and silent connections must not stay. */
const timeouts = { ...defaultHttpTimeouts, headersMs: 3_000 };
const connectionBounds = { all: 100, ofAddress: 50 } as const;

const adminDocument: ApiDocument = {
  title: 'maxsimd admin',
  description: `Tenants, their API keys, limits and usage, and the log of what was done to them. Errors, request ids and pages are as in the
interface of the service.`,
  tags: {
    tenants: 'Who may use the service, how much, and what they used.',
    keys: 'What tenants send with their requests.',
    audit: 'What was done here.',
    reference: 'This description.',
  },
  keyDescription: 'The key of an operator, from MAXSIMD_ADMIN_KEY_FILE.',
  hidden: '/admin/console',
};

export async function createAdminServer(options: AdminServerOptions): Promise<FastifyInstance> {
  const { administrationOf, memoryBytesOf, operators, observer } = options;
  const refusedLogins = new RefusedLogins(options.noteRefusedLogin, (login, error) =>
    observer.failed(login, error),
  );
  const { app } = createApp({
    ...options,
    timeouts,
    bodyBytesMax: smallBodyBytes,
  });
  const connections = new KnownConnections(app.server, connectionBounds, () =>
    options.observer.connectionRefused(),
  );
  const identified = (request: FastifyRequest): string => {
    const { authorization } = request.headers;
    const operator = operators.identify(authorization);
    if (operator !== undefined) return operator;
    const keyDigest = refusedKeyDigest(authorization);
    refusedLogins.note({ requestId: request.id, address: request.ip, keyDigest });
    throw new ServiceError('authentication_failed', 'the operator key is missing or wrong');
  };
  const admit = (request: FastifyRequest, operator: string | undefined): void => {
    if (operator === undefined) throw new ServiceError('authentication_failed', 'the session has ended');
    connections.known(request.raw.socket);
    request.scope.admitOperator(operator);
  };
  await describeApi(app, adminDocument);
  await app.register(
    async (v1) => {
      v1.addHook('onRequest', async (request) => {
        admit(request, identified(request));
        if (request.is404) throw unknownRoute();
      });
      v1.setNotFoundHandler(() => {
        throw unknownRoute();
      });
      for (const routes of adminRoutes) await v1.register(routes(administrationOf, memoryBytesOf));
    },
    { prefix: '/admin/v1' },
  );
  if (options.page !== undefined) {
    const { page } = options;
    const routes = operatorConsole({ page, administrationOf, memoryBytesOf, identified, admit });
    await app.register(routes, { prefix: '/admin/console' });
  }
  app.addHook('onClose', () => refusedLogins.close());
  await app.ready();
  return app;
}
