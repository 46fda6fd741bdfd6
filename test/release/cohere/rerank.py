"""Re-ranks through the SDK of Cohere and through LangChain's part for it. Prints the results as JSON."""

from __future__ import annotations

import asyncio
import json
import os
import sys

import cohere
from langchain_cohere import CohereRerank
from langchain_core.documents import Document

URL, KEY = os.environ["MAXSIMD_URL"], os.environ["MAXSIMD_API_KEY"]
asked = json.load(sys.stdin)
query, texts = asked["query"], asked["texts"]


def pairs(answer: cohere.V2RerankResponse) -> list[list[float]]:
    return [[result.index, result.relevance_score] for result in answer.results]


async def asynchronous() -> list[list[float]]:
    async with cohere.AsyncClientV2(KEY, base_url=URL) as client:
        return pairs(await client.rerank(model="default", query=query, documents=texts, max_tokens_per_doc=4096))


def refusals() -> list[str]:
    """The classes and codes of two errors."""
    found = []
    for key, documents in ((KEY, texts * 201), ("qkv_live_wrong", texts)):
        try:
            cohere.ClientV2(key, base_url=URL).rerank(model="default", query=query, documents=documents)
        except (cohere.UnprocessableEntityError, cohere.UnauthorizedError) as error:
            found.append(f"{type(error).__name__} {error.body['error']['code']}")
    return found


client = cohere.ClientV2(KEY, base_url=URL)
whole = client.rerank(model="default", query=query, documents=texts)
compressor = CohereRerank(model="default", cohere_api_key=KEY, base_url=URL)
compressed = compressor.compress_documents([Document(text, metadata={"at": at}) for at, text in enumerate(texts)], query)
print(
    json.dumps(
        {
            "sync": pairs(whole),
            "tokens": whole.meta.billed_units.input_tokens,
            "best": pairs(client.rerank(model="default", query=query, documents=texts, top_n=2)),
            "async": asyncio.run(asynchronous()),
            "langchain": [[document.metadata["at"], document.metadata["relevance_score"]] for document in compressed],
            "refusals": refusals(),
        }
    )
)
