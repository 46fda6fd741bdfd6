/** `/admin/console`: the page of the console for operators, and the routes of the admin API, admitted by its session. */
import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import type { LocalAdministration } from '../../service/administration.ts';
import { unknownRoute } from '../admission.ts';
import { servePage, type ConsolePage } from '../console/page.ts';
import { forgetSession, keepSession, operatorCookie, sessionIn } from '../console/session-cookie.ts';
import { OperatorSessions, operatorSessionMs } from './operator-sessions.ts';
import { adminRoutes, type MemoryBytesOf } from './routes.ts';

export interface OperatorConsoleOptions {
  readonly page: ConsolePage;
  readonly administrationOf: (operator: string) => LocalAdministration;
  readonly memoryBytesOf: MemoryBytesOf;
  /** The operator whose key is in the header; throws for any other request, and notes it. */
  readonly identified: (request: FastifyRequest) => string;
  /** Admits the operator, or throws if there is none. */
  readonly admit: (request: FastifyRequest, operator: string | undefined) => void;
}

export function operatorConsole(options: OperatorConsoleOptions): FastifyPluginAsync {
  const { page, administrationOf, memoryBytesOf, identified, admit } = options;
  const sessions = new OperatorSessions();
  return async (app) => {
    servePage(app, page, 'operators');

    app.post('/session', async (request, reply) => {
      const operator = identified(request);
      admit(request, operator);
      const session = sessions.open(operator);
      keepSession(operatorCookie, request, reply, { session, seconds: operatorSessionMs / 1000 });
      return reply.code(204).send();
    });
    app.delete('/session', async (request, reply) => {
      sessions.end(sessionIn(operatorCookie, request));
      forgetSession(operatorCookie, request, reply);
      return reply.code(204).send();
    });

    await app.register(
      async (v1) => {
        v1.addHook('onRequest', async (request) => {
          admit(request, sessions.operatorOf(sessionIn(operatorCookie, request)));
          if (request.is404) throw unknownRoute();
        });
        v1.setNotFoundHandler(() => {
          throw unknownRoute();
        });
        v1.get('/session', async () => ({ access: 'operator' }));
        for (const routes of adminRoutes) await v1.register(routes(administrationOf, memoryBytesOf));
      },
      { prefix: '/v1' },
    );
  };
}
