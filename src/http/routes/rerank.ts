/**
 * Scores of `/v1/score` in the shapes of other services, so that programs for them work with this one. The same route answers at
 * three addresses, because programs add `/rerank`, `/v1/rerank` or `/v2/rerank` to the address that they are given.
 */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { ServiceError } from '../../errors.ts';
import { defaultModelAlias, type ScoreResponse, type Service } from '../../service/contract.ts';
import type { JsonBounds } from '../body/json-body.ts';
import { jsonContentType, validationError } from '../error-body.ts';
import { documentsMax, rerankedDocumentsMax, textBytesMax } from '../limits.ts';
import { addition } from '../schemas/addition.ts';
import {
  AnyRerankBody,
  AnyReranked,
  hasTexts,
  ignoredFields,
  RerankBody,
  RerankTextsBody,
  textOf,
} from '../schemas/rerank.ts';
import { answers, scoreErrors } from './answers.ts';
import { rerankAnswer, rerankTextsAnswer } from './representations.ts';

/** A thousand documents of some fields each. Objects in them are values like all others. */
const jsonBounds: JsonBounds = {
  itemsMax: rerankedDocumentsMax,
  valuesMax: 64_000,
  customerFields: new Set(),
};

/** Cohere's. */
const spanThresholdDefault = 0.1;

export function rerankRoute(operationId: string) {
  return (service: Service): FastifyPluginAsyncZod =>
    async (app) => {
      app.post('/rerank', {
        config: { reads: true, deadline: 'upsert', jsonBounds, besideErrors },
        validatorCompiler: () => validated,
        schema: {
          operationId,
          summary: `Rank up to ${rerankedDocumentsMax} texts of the request, in the shapes of Cohere, Jina, vLLM and TEI`,
          description:
            'Scores as `/v1/score` does, with the same keys, limits and charges. It counts as one score. Nothing is stored. Long documents are cut. Every document has a result, also one without a token, unless `min_score` leaves it out. `/rerank`, `/v1/rerank` and `/v2/rerank` are the same. Errors also have `detail` and `message`, the message as a string.',
          tags: ['ranking'],
          ...addition,
          body: AnyRerankBody,
          response: answers({ 200: [AnyReranked, 'Results, best first.'] }, scoreErrors),
        },
        handler: async (request, reply) => {
          const { body } = request;
          const answer =
            'texts' in body ? ofTexts(service, request, body) : ofDocuments(service, request, body);
          return reply.type(jsonContentType).send(await answer);
        },
      });
    };
}

/** The schema of the request's shape checks it, so that an error names the field of that shape. */
function validated(data: unknown) {
  const result = (hasTexts(data) ? RerankTextsBody : RerankBody).safeParse(data);
  return result.success ? { value: result.data } : { error: validationError(result.error) };
}

async function ofDocuments(
  service: Service,
  { scope, id }: FastifyRequest,
  body: z.output<typeof RerankBody>,
): Promise<string | Buffer> {
  const { model, top_n: topN, top_k: topK } = body;
  const texts = body.documents.map((document) => textOf(document, body.rank_fields));
  const counted = texts.map(countedPart);
  const minScore = Math.max(body.min_score ?? 0, body.score_threshold ?? 0);
  const wanted = body.relevant_spans?.mode === 'enabled' ? body.relevant_spans : undefined;
  const spans = texts.length <= documentsMax ? wanted : undefined;
  const response = await scope.run((context) =>
    service.score(context, {
      model,
      query: body.query,
      documents: documentsOf(counted),
      cut: { documentTokensMax: body.max_tokens_per_doc },
      minScore,
      returnComponents: spans !== undefined,
      ...(spans !== undefined && { passage: { context: 0 } }),
    }),
  );
  const given: string[] = ignoredFields.filter((field) => body[field] !== undefined);
  if (wanted !== spans) given.push(`relevant_spans (more than ${documentsMax} documents)`);
  const shortened = texts.filter((text, at) => text !== counted[at]).length;
  return rerankAnswer(response, {
    id,
    model: model ?? defaultModelAlias,
    texts,
    returnsTexts: body.return_documents === true,
    topN: Math.min(topN ?? texts.length, topK ?? texts.length),
    minScore,
    ...(spans !== undefined && {
      spans: { threshold: spans.threshold ?? spanThresholdDefault, most: spans.max_spans ?? Infinity },
    }),
    warnings: warningsOf(response, { given, shortened }),
  });
}

async function ofTexts(
  service: Service,
  { scope }: FastifyRequest,
  {
    model,
    query,
    texts,
    top_n: topN,
    raw_scores: isRaw,
    return_text: returnsTexts,
  }: z.output<typeof RerankTextsBody>,
): Promise<string | Buffer> {
  const documents = documentsOf(texts.map(countedPart));
  const response = await scope.run((context) =>
    service.score(context, { model, query, documents, cut: {}, returnComponents: false }),
  );
  return rerankTextsAnswer(response, {
    texts,
    topN: topN ?? texts.length,
    isRaw: isRaw === true,
    returnsTexts: returnsTexts === true,
  });
}

function documentsOf(texts: readonly string[]) {
  return texts.map((text, at) => ({ docId: String(at), text, metadata: '{}' }));
}

const encoder = new TextEncoder();
const counted = new Uint8Array(textBytesMax);

/** The first bytes of a text, up to the bound on texts. */
function countedPart(text: string): string {
  if (text.length * 3 <= textBytesMax) return text;
  return text.slice(0, encoder.encodeInto(text, counted).read);
}

function countOf(documents: number): string {
  return documents === 1 ? '1 document' : `${documents} documents`;
}

function warningsOf(
  { cut }: ScoreResponse,
  { given, shortened }: { readonly given: readonly string[]; readonly shortened: number },
): string[] {
  const warnings: string[] = [];
  if (given.length > 0) warnings.push(`ignored: ${given.join(', ')}`);
  if (shortened > 0) warnings.push(`only the first ${textBytesMax} bytes were read of ${countOf(shortened)}`);
  if (cut !== undefined) {
    const why = cut.isToFit
      ? `, because the list has more than the ${cut.tokensMax} that a request may have`
      : '';
    const tokens = `only the first ${cut.tokens} tokens (max_tokens_per_doc) count`;
    warnings.push(`${tokens} of ${countOf(cut.documents)}${why}`);
  }
  return warnings;
}

/** TEI's names of its kinds of errors. */
const errorTypes: Readonly<Record<number, string>> = {
  413: 'Validation',
  422: 'Validation',
  429: 'Overloaded',
  503: 'Overloaded',
};

/** Programs for Jina read `detail`, others `message`. Programs for TEI read `error_type`. */
function besideErrors({ message, httpStatus }: ServiceError, body: unknown): object {
  const type = hasTexts(body) ? { error_type: errorTypes[httpStatus] ?? 'Backend' } : {};
  return { detail: message, message, ...type };
}
