/** Re-ranks through one client of another service: `clients.mjs NAME ADDRESS`. Prints positions and scores as JSON. */
import { createRequire } from 'node:module';
import { text } from 'node:stream/consumers';

const [, , name, address] = process.argv;
const token = process.env.MAXSIMD_API_KEY;
const { query, texts } = JSON.parse(await text(process.stdin));
const topN = texts.length;

const clients = {
  'cohere-ai CohereClientV2': async () => {
    const { CohereClientV2 } = await import('cohere-ai');
    const client = new CohereClientV2({ token, baseUrl: address });
    const { results } = await client.rerank({ model: 'default', query, documents: texts });
    return results.map((one) => [one.index, one.relevanceScore]);
  },
  'LangChain.js CohereRerank': async () => {
    const { CohereRerank } = await import('@langchain/cohere');
    // The client of its own version of cohere-ai.
    const { CohereClient } = createRequire(import.meta.resolve('@langchain/cohere'))('cohere-ai');
    const client = new CohereClient({ token, environment: address });
    const ranked = await new CohereRerank({ model: 'default', client, topN }).rerank(texts, query);
    return ranked.map((one) => [one.index, one.relevanceScore]);
  },
  'AI SDK rerank': async () => {
    const { rerank } = await import('ai');
    const { createCohere } = await import('@ai-sdk/cohere');
    const model = createCohere({ apiKey: token, baseURL: address }).reranking('default');
    const { ranking } = await rerank({ model, query, documents: texts, topN });
    return ranking.map((one) => [one.originalIndex, one.score]);
  },
};
console.log(JSON.stringify(await clients[name]()));
