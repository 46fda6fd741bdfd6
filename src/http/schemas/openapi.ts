/**
 * The OpenAPI 3.1 document and its interactive page. The document is generated from the routes and their zod schemas. Headers
 * and protocol statuses, which all operations share, are added here. The document also suits generators of clients: every
 * object has a name, and answers may gain properties. A property with a default has no `default`, because some generators
 * read it as "always present".
 */
import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import { createJsonSchemaTransformObject, jsonSchemaTransform } from 'fastify-type-provider-zod';
import type { OpenAPIV3_1 } from 'openapi-types';
import { z } from 'zod';
import { answers } from '../routes/answers.ts';
import { addition } from './addition.ts';
import { protocolStatuses } from './errors.ts';
import { requestExamples } from './examples.ts';

const apiVersion = '0.1.0-alpha';

type Document = Partial<OpenAPIV3_1.Document>;
type Operation = OpenAPIV3_1.OperationObject;
type Headers = Record<string, OpenAPIV3_1.HeaderObject>;

/** The parts of a document that do not come from routes and schemas. */
export interface ApiDocument {
  readonly title: string;
  /** Markdown. */
  readonly description: string;
  /** Name -> subject of its operations. */
  readonly tags: Readonly<Record<string, string>>;
  readonly keyDescription: string;
  /** Paths with this prefix are left out. */
  readonly hidden?: string;
  /** Answers at paths with these prefixes have headers of the tenant's rate. */
  readonly rated?: readonly string[];
}

const OpenApiDocument = z.looseObject({ openapi: z.string() }).meta({ id: 'OpenApiDocument' });

export async function describeApi(app: FastifyInstance, api: ApiDocument): Promise<void> {
  const addComponents = createJsonSchemaTransformObject({});
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: api.title,
        version: apiVersion,
        description: api.description,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: serversAt('.'),
      tags: Object.entries(api.tags).map(([name, text]) => ({ name, description: text })),
      components: {
        securitySchemes: {
          apiKey: { type: 'http', scheme: 'bearer', description: api.keyDescription },
        },
      },
      security: [{ apiKey: [] }],
    },
    // The plug-in would read a relative address as an absolute one.
    stripBasePath: false,
    transform: (route) =>
      api.hidden !== undefined && route.url.startsWith(api.hidden)
        ? { schema: { hide: true }, url: route.url }
        : jsonSchemaTransform(route),
    transformObject: (generated) => completeDocument(api, addComponents(generated) as Document),
  });

  // The page loads nothing from other hosts: no fonts, no validator badge.
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    uiConfig: { deepLinking: true, defaultModelsExpandDepth: 0, tryItOutEnabled: true },
    theme: { title: api.title },
    logo: { type: 'image/svg+xml', content: wordmark },
    // The page's own addresses are relative too.
    indexPrefix: '.',
    transformSpecification: (document) => ({ ...document, servers: serversAt('..') }),
    transformSpecificationClone: false,
    uiHooks: { onRequest: redirectToPage },
    staticCSP:
      "default-src 'none'; connect-src 'self'; img-src 'self' data:; script-src 'self'; style-src 'self' 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  });

  let text: string | undefined;
  app.get('/openapi.json', {
    schema: {
      operationId: 'openapi',
      summary: 'This description as OpenAPI 3.1',
      description: 'It is generated from the routes and schemas that the service runs.',
      tags: ['reference'],
      security: [],
      ...addition,
      response: answers({ 200: [OpenApiDocument, 'OpenAPI 3.1.'] }, []),
    },
    handler: async (_request, reply) => {
      text ??= JSON.stringify(app.swagger());
      return reply.type('application/json; charset=utf-8').send(text);
    },
  });
}

/**
 * `url` is relative to the address of the document: only the client knows which path a proxy may have put before it. So it
 * depends on where the document is.
 */
function serversAt(url: string): OpenAPIV3_1.ServerObject[] {
  return [{ url, description: 'This service.' }];
}

/** The plug-in would redirect to `/docs/`. */
const redirectToPage: onRequestHookHandler = (request, reply, done) => {
  if (request.routeOptions.url === '/docs/static/index.html') void reply.redirect('../');
  else done();
};

const wordmark = Buffer.from(
  '<svg xmlns="http://www.w3.org/2000/svg" width="150" height="40"><text x="0" y="28" font-family="sans-serif" font-size="26" font-weight="bold" fill="#fff">maxsimd</text></svg>',
);

const methodsWithBody = new Set(['post', 'patch', 'delete']);

/** Adds the page and the common parts of all operations. Drops components that nothing refers to. */
function completeDocument({ rated = [] }: ApiDocument, generated: Document): Document {
  const document: Document = { ...generated, paths: { ...generated.paths, '/docs': docsPath } };
  for (const [path, item] of Object.entries(document.paths ?? {})) {
    for (const [method, operation] of Object.entries(item ?? {}) as [string, Operation][]) {
      const admitted = rated.some((prefix) => path.startsWith(prefix));
      completeOperation(operation, admitted, methodsWithBody.has(method));
    }
  }
  return withPlainSchemas(withoutUnusedSchemas(document));
}

function completeOperation(operation: Operation, admitted: boolean, takesBody: boolean): void {
  const examples = requestExamples[operation.operationId ?? ''];
  if (examples !== undefined && operation.requestBody !== undefined && 'content' in operation.requestBody)
    Object.assign(operation.requestBody.content['application/json']!, { examples });
  operation.responses ??= {};
  for (const [status, text] of Object.entries(protocolStatuses)) {
    const ofBody = status === '413' || status === '415' || status === '417';
    if (ofBody && !takesBody) continue;
    operation.responses[status] = {
      description: `\`validation_error\`: ${text}`,
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
    };
  }
  for (const [status, response] of Object.entries(operation.responses)) {
    if ('$ref' in response) continue;
    response.headers = {
      'x-request-id': {
        description: 'Identifies the request in logs and support questions. It is no secret.',
        required: true,
        schema: { type: 'string', minLength: 1 },
      },
      ...(admitted ? rateHeaders : {}),
      ...statusHeaders[status],
    };
  }
}

const retryAfter = {
  description: 'Wait at least this many seconds before you retry.',
  schema: { type: 'integer', minimum: 1 },
} as const;

const statusHeaders: Readonly<Record<string, Headers>> = {
  201: {
    location: {
      description: 'Address of the new resource, relative to that of the request.',
      schema: { type: 'string' },
    },
  },
  401: { 'www-authenticate': { schema: { type: 'string', enum: ['Bearer'] } } },
  429: { 'retry-after': { ...retryAfter, required: true } },
  503: { 'retry-after': retryAfter },
};

const rateHeader = (text: string) => ({
  description: `${text} Absent if the request was refused before its rate was checked.`,
  schema: { type: 'integer', minimum: 0 } as const,
  ...addition,
});
const rateHeaders: Headers = {
  'ratelimit-limit': rateHeader('Requests per minute of the tenant.'),
  'ratelimit-remaining': rateHeader('Requests left in the current window.'),
  'ratelimit-reset': rateHeader('Seconds until the window is empty again.'),
};

/** The plug-in hides the routes of the interactive page. This is their entry in the document. */
const docsPath: OpenAPIV3_1.PathItemObject = {
  get: {
    operationId: 'docs',
    summary: 'This description as an interactive page',
    description: 'You can send requests from it.',
    tags: ['reference'],
    security: [],
    ...addition,
    responses: {
      200: { description: 'The page. It loads nothing from other hosts.', content: { 'text/html': {} } },
    },
  },
};

function withoutUnusedSchemas(document: Document): Document {
  const { schemas = {}, ...components } = document.components ?? {};
  const used = new Set<string>();
  const visit = (node: unknown): void => {
    for (const [, name] of JSON.stringify(node).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
      if (name === undefined || used.has(name)) continue;
      used.add(name);
      visit(schemas[name]);
    }
  };
  visit(document.paths);
  return {
    ...document,
    components: {
      ...components,
      schemas: Object.fromEntries(Object.entries(schemas).filter(([name]) => used.has(name))),
    },
  };
}

function withPlainSchemas(document: Document): Document {
  const paths = plainSchema(document.paths, false) as OpenAPIV3_1.PathsObject;
  const schemas = Object.entries(document.components?.schemas ?? {}).map(([name, schema]) => [
    name,
    plainSchema(schema, !name.endsWith('Input')) as OpenAPIV3_1.SchemaObject,
  ]);
  return { ...document, paths, components: { ...document.components, schemas: Object.fromEntries(schemas) } };
}

/**
 * Leaves out parts that zod adds and no reader of the document needs: the bounds of JavaScript's integers, patterns beside a
 * format, the type of property names. An answer may gain properties, so it does not exclude others.
 */
function plainSchema(node: unknown, ofAnswer: boolean): unknown {
  if (Array.isArray(node)) return node.map((item) => plainSchema(item, ofAnswer));
  if (typeof node !== 'object' || node === null) return node;
  const entries = Object.entries(node).filter(
    ([key, value]) =>
      !(ofAnswer && key === 'additionalProperties' && value === false) &&
      !(key === 'pattern' && 'format' in node) &&
      key !== 'propertyNames' &&
      !(Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER && (key === 'minimum' || key === 'maximum')),
  );
  return Object.fromEntries(
    entries.map(([key, value]) => [key, key === 'examples' ? value : plainSchema(value, ofAnswer)]),
  );
}
