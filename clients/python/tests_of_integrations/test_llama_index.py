"""LlamaIndex's own index over a vector store, with a client that blocks and with one for asyncio."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.schema import Document, NodeWithScore, QueryBundle, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

from maxsimd import AsyncMaxsimd, Maxsimd, MaxsimdError
from maxsimd.integrations.llama_index import MaxsimdReranker, MaxsimdRetriever, MaxsimdVectorStore

TEXTS = {f"animal {number}": f"Animal number {number} lives in a forest." for number in range(5)}


@pytest.fixture(params=["threads", "native"])
def async_client(request: pytest.FixtureRequest) -> AsyncMaxsimd | None:
    return AsyncMaxsimd() if request.param == "native" else None


@pytest.fixture
def store(name: str, async_client: AsyncMaxsimd | None) -> Iterator[MaxsimdVectorStore]:
    client = Maxsimd()
    index = client.create_index(f"llama {name}")
    yield MaxsimdVectorStore(client, index.id, SimpleDocumentStore(), async_client=async_client)
    client.delete_index(index.id)


def where(key: str, operator: FilterOperator, value: int | str | list[int] | None) -> MetadataFilter:
    return MetadataFilter(key=key, operator=operator, value=value)  # type: ignore[arg-type]


@pytest.fixture
def found(store: MaxsimdVectorStore) -> Callable[..., list[str]]:
    store.add([
        TextNode(id_=doc_id, text=text, metadata={"n": n, "tags": [str(n), "all"]} | ({"rare": 1} if n == 4 else {}))
        for n, (doc_id, text) in enumerate(TEXTS.items())
    ])

    def of(*filters: MetadataFilter | MetadataFilters, condition: FilterCondition = FilterCondition.AND) -> list[str]:
        asked = MetadataFilters(filters=list(filters), condition=condition)
        query = VectorStoreQuery(query_str="who lives in a forest?", similarity_top_k=10, filters=asked)
        return sorted(doc_id[-1] for doc_id in store.query(query).ids or [])

    return of


def test_an_index_finds_and_forgets(store: MaxsimdVectorStore) -> None:
    index = VectorStoreIndex.from_vector_store(store, embed_model=MockEmbedding(embed_dim=1))
    for doc_id, text in TEXTS.items():
        index.insert(Document(id_=doc_id, text=text))
    retriever = index.as_retriever(similarity_top_k=2)
    best, other = retriever.retrieve("animal number 3")
    assert (best.node.ref_doc_id, best.get_content()) == ("animal 3", TEXTS["animal 3"])
    assert (best.score or 0) > (other.score or 0)
    index.delete_ref_doc("animal 3")
    assert all(node.node.ref_doc_id != "animal 3" for node in retriever.retrieve("animal number 3"))
    assert store.get_nodes([best.node.node_id]) == []


async def test_async_calls(store: MaxsimdVectorStore, async_client: AsyncMaxsimd | None) -> None:
    nodes = [TextNode(id_=doc_id, text=text) for doc_id, text in TEXTS.items()]
    await store.async_add(nodes)
    found = await store.aquery(VectorStoreQuery(query_str="animal number 3", similarity_top_k=2))
    assert [node.node_id for node in found.nodes or []] == found.ids
    assert (found.ids or [])[0] == "animal 3"

    await store.adelete_nodes(["animal 4"])
    assert [node.node_id for node in await store.aget_nodes(["animal 4", "animal 0"])] == ["animal 0"]
    store.delete_nodes(["animal 0"])
    assert len(store.query(VectorStoreQuery(query_str="who?", similarity_top_k=9)).ids or []) == 3

    async def load(doc_ids: list[str]) -> dict[str, str]:
        return TEXTS

    retriever = MaxsimdRetriever(store.client, store._index_id, load, async_client=async_client, top_k=1)
    [best] = await retriever.aretrieve("animal number 3")
    assert best.get_content() == TEXTS["animal 3"]
    reranker = MaxsimdReranker(store.client, async_client=async_client, top_n=1)
    scored = [NodeWithScore(node=node) for node in nodes]
    [best] = await reranker.apostprocess_nodes(scored, QueryBundle("animal number 3"))
    assert best.node.node_id == "animal 3"


def test_filters_are_conditions(found: Callable[..., list[str]]) -> None:
    assert found(where("n", FilterOperator.EQ, 3)) == ["3"]
    assert found(where("n", FilterOperator.NE, 3)) == ["0", "1", "2", "4"]
    assert found(where("n", FilterOperator.GT, 1), where("n", FilterOperator.LTE, 3)) == ["2", "3"]
    assert found(where("n", FilterOperator.IN, [1, 4])) == ["1", "4"]
    assert found(where("n", FilterOperator.NIN, [1, 4])) == ["0", "2", "3"]
    assert found(where("tags", FilterOperator.CONTAINS, "2")) == ["2"]
    assert found(where("tags", FilterOperator.ALL, ["2", "all"])) == ["2"]
    assert found(where("tags", FilterOperator.CONTAINS, "2"), where("tags", FilterOperator.CONTAINS, "all")) == ["2"]
    assert found(where("rare", FilterOperator.IS_EMPTY, None)) == ["0", "1", "2", "3"]
    ends = (where("n", FilterOperator.LT, 1), where("n", FilterOperator.GTE, 4))
    assert found(*ends, condition=FilterCondition.OR) == ["0", "4"]
    inner = MetadataFilters(filters=list(ends), condition=FilterCondition.OR)
    assert found(inner, where("tags", FilterOperator.ANY, ["4", "2"])) == ["4"]  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="has no operator"):
        found(where("n", FilterOperator.TEXT_MATCH, "a"))
    assert found(where("n", FilterOperator.GT, 1), where("n", FilterOperator.GT, 2)) == ["3", "4"]
    assert found(*(where("n", FilterOperator.NE, n) for n in range(4))) == ["4"]
    even = [where("n", FilterOperator.EQ, n) for n in (0, 2, 4)]
    low = [where("n", FilterOperator.LT, 1), where("tags", FilterOperator.CONTAINS, "2")]
    groups = [MetadataFilters(filters=list(one), condition=FilterCondition.OR) for one in (even, low)]
    assert found(*groups) == ["0", "2"]
    with pytest.raises(ValueError, match="a search cannot hold this filter"):
        found(*groups * 5)


def test_what_the_service_cannot_do_is_refused(store: MaxsimdVectorStore) -> None:
    with pytest.raises(ValueError, match="mode"):
        store.query(VectorStoreQuery(query_str="q", mode=VectorStoreQueryMode.MMR))
    with pytest.raises(ValueError, match="query_str"):
        store.query(VectorStoreQuery(query_embedding=[1.0]))
    with pytest.raises(TypeError, match="unknown parameters: top_k"):
        store.query(VectorStoreQuery(query_str="q"), top_k=1)
    with pytest.raises(MaxsimdError, match="1 documents were refused"):
        store.add([TextNode(id_="empty", text=""), TextNode(id_="bar", text="bar")])
    assert [node.node_id for node in store.get_nodes(["empty", "bar"])] == ["bar"]
