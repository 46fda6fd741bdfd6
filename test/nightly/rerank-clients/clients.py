"""Re-ranks through one client of another service: `clients.py NAME ADDRESS`. Prints positions and scores as JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "HAYSTACK_TELEMETRY_ENABLED": "False"}
KEY = os.environ["MAXSIMD_API_KEY"]
_, NAME, ADDRESS = sys.argv
ASKED = json.load(sys.stdin)
QUERY: str = ASKED["query"]
TEXTS: list[str] = ASKED["texts"]
Pairs = list[tuple[int, float]]


def of_cohere(name: str) -> Pairs:
    import cohere

    client = getattr(cohere, name)(KEY, base_url=ADDRESS)
    return [(one.index, one.relevance_score) for one in client.rerank(model="default", query=QUERY, documents=TEXTS).results]


def of_litellm(provider: str, **options: Any) -> Pairs:
    import litellm

    named = {"model": f"{provider}/default", "api_base": ADDRESS, "api_key": KEY, **options}
    return [(one["index"], one["relevance_score"]) for one in litellm.rerank(query=QUERY, documents=TEXTS, **named).results]


def of_rerankers(provider: str) -> Pairs:
    from rerankers.models.api_rankers import APIRanker

    ranked = APIRanker("default", KEY, provider, url=ADDRESS).rank(QUERY, TEXTS)
    return [(one.document.doc_id, one.score) for one in ranked.results]


def of_haystack(name: str) -> Pairs:
    from haystack import Document
    from haystack.utils import Secret
    from haystack_integrations.components.rankers.cohere import CohereRanker
    from haystack_integrations.components.rankers.jina import JinaRanker

    key = Secret.from_token(KEY)
    ranker = (
        CohereRanker(model="default", api_base_url=ADDRESS, api_key=key)
        if name == "cohere"
        else JinaRanker(model="default", base_url=ADDRESS, api_key=key)
    )
    documents = [Document(id=str(at), content=text) for at, text in enumerate(TEXTS)]
    return [(int(one.id), one.score) for one in ranker.run(QUERY, documents)["documents"]]


def of_llama_index(reranker: Callable[..., Any]) -> Pairs:
    from llama_index.core.schema import NodeWithScore, TextNode

    nodes = [NodeWithScore(node=TextNode(id_=str(at), text=text)) for at, text in enumerate(TEXTS)]
    ranker = reranker(model="default", base_url=ADDRESS, api_key=KEY, top_n=len(TEXTS))
    return [(int(one.node.node_id), one.score) for one in ranker.postprocess_nodes(nodes, query_str=QUERY)]


def llama_index_cohere() -> Pairs:
    from llama_index.postprocessor.cohere_rerank import CohereRerank

    return of_llama_index(CohereRerank)


def llama_index_jina() -> Pairs:
    from llama_index.postprocessor.jinaai_rerank import JinaRerank

    return of_llama_index(JinaRerank)


def langchain() -> Pairs:
    from langchain_cohere import CohereRerank

    ranker = CohereRerank(model="default", base_url=ADDRESS, cohere_api_key=KEY)
    return [(one["index"], one["relevance_score"]) for one in ranker.rerank(TEXTS, QUERY, top_n=len(TEXTS))]


CLIENTS: dict[str, Callable[[], Pairs]] = {
    "cohere ClientV2": lambda: of_cohere("ClientV2"),
    "cohere Client": lambda: of_cohere("Client"),
    "litellm cohere/": lambda: of_litellm("cohere"),
    "litellm jina_ai/": lambda: of_litellm("jina_ai"),
    "litellm hosted_vllm/": lambda: of_litellm("hosted_vllm"),
    "litellm infinity/": lambda: of_litellm("infinity", return_documents=False),
    "rerankers cohere": lambda: of_rerankers("cohere"),
    "rerankers jina": lambda: of_rerankers("jina"),
    "rerankers text-embeddings-inference": lambda: of_rerankers("text-embeddings-inference"),
    "Haystack CohereRanker": lambda: of_haystack("cohere"),
    "Haystack JinaRanker": lambda: of_haystack("jina"),
    "LlamaIndex CohereRerank": llama_index_cohere,
    "LlamaIndex JinaRerank": llama_index_jina,
    "LangChain CohereRerank": langchain,
}
print(json.dumps(CLIENTS[NAME]()))
