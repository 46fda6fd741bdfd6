"""Requests and answers without any input or output: what both clients share."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime, time
from enum import Enum
from importlib.metadata import version
from math import isfinite
from numbers import Integral, Rational, Real
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import quote
from uuid import UUID

import httpx
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from .errors import APIError, ConnectionFailed, MaxsimdError, error_of_code
from .models import (
    Activity,
    ChunkingOptionsInput,
    Deleted,
    DeletedDocuments,
    DocumentCount,
    DocumentInput,
    DocumentList,
    Facets,
    Index,
    IndexList,
    Issue,
    QueryAnswers,
    QueryItemInput,
    Ranked,
    Readiness,
    Reranked,
    StoredDocument,
    UpsertResult,
    UsageDays,
    UsageSummary,
)

_LEVELS_MAX = 200
"""No request needs more levels. Metadata may have 16."""
_PATH_CHARACTERS_MAX = 200
_UNCONNECTED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
"""No connection was made, so no request was received. A proxy that refuses a tunnel made none to the service."""

Answer = TypeVar("Answer", bound=BaseModel)
Document = DocumentInput | Mapping[str, Any]
Query = QueryItemInput | Mapping[str, Any]


@dataclass(frozen=True)
class Call(Generic[Answer]):
    method: str
    path: str
    answer: type[Answer]
    is_safe: bool
    """Whether doing it twice is as good as doing it once."""
    body: bytes | None = None
    is_unique: bool = False
    """Whether a second one would be refused once the first was done; then it is sent again after 503."""
    is_patient: bool = False
    """Waits for as long as the rate and concurrency limits ask; otherwise within the client's bound."""
    late_after: float | None = None
    """An attempt that ended with 408, 502, 503, 504 or the time limit after more seconds is not repeated.

    After the wait the call raises a `LateError`.
    """


def create_index(
    name: str,
    model: str | None,
    metadata_schema: Mapping[str, Any] | None,
    chunking: ChunkingOptionsInput | Mapping[str, Any] | None,
    match_fields: Sequence[str] | None,
    if_exists: Literal["return"] | None,
) -> Call[Index]:
    given = {"name": name, "model": model, "metadata_schema": metadata_schema, "chunking": chunking}
    fields = None if match_fields is None else list(match_fields)
    body = _body({**given, "match_fields": fields, "if_exists": if_exists})
    return Call("POST", "/v1/indexes", Index, is_safe=if_exists is not None, is_unique=True, body=body)


def is_name(index_id: UUID | str) -> bool:
    return str(index_id).startswith("name:")


def list_indexes() -> Call[IndexList]:
    return Call("GET", "/v1/indexes", IndexList, is_safe=True)


def get_index(index_id: UUID | str) -> Call[Index]:
    return Call("GET", _index_path(index_id), Index, is_safe=True)


def rename_index(index_id: UUID | str, name: str) -> Call[Index]:
    # By its old name the index is not found a second time.
    return Call("PATCH", _index_path(index_id), Index, is_safe=not is_name(index_id), body=_body({"name": name}))


def set_match_fields(index_id: UUID | str, match_fields: Sequence[str]) -> Call[Index]:
    return Call("PATCH", _index_path(index_id), Index, is_safe=True, body=_body({"match_fields": list(match_fields)}))


def swap_index_names(index_id: UUID | str, other_id: UUID | str) -> Call[Index]:
    body = _body({"swap_name_with": str(other_id)})
    return Call("PATCH", _index_path(index_id), Index, is_safe=False, body=body)


def delete_index(index_id: UUID | str) -> Call[Deleted]:
    return Call("DELETE", _index_path(index_id), Deleted, is_safe=False)


def upsert(
    index_id: UUID | str, documents: Iterable[Document], expires_at: datetime | str | None
) -> Call[UpsertResult]:
    expiry = None if expires_at is None else time_text(expires_at)
    body = _json({"documents": [plain(document) for document in documents]})
    return Call("POST", _upsert_path(index_id, expiry), UpsertResult, is_safe=True, body=body)


def upsert_of_import(
    index_id: UUID | str, documents: Iterable[bytes], expires_at: str | None, late_after: float
) -> Call[UpsertResult]:
    body = b'{"documents":[' + b",".join(documents) + b"]}"
    path = _upsert_path(index_id, expires_at)
    return Call("POST", path, UpsertResult, is_safe=True, body=body, is_patient=True, late_after=late_after)


def _upsert_path(index_id: UUID | str, expires_at: str | None) -> str:
    query = "" if expires_at is None else f"?expires_at={quote(expires_at, safe='')}"
    return _index_path(index_id, "documents") + query


def list_documents(
    index_id: UUID | str, where: Mapping[str, Any] | None, fields: list[str] | None, cursor: str | None
) -> Call[DocumentList]:
    if where is not None or fields is not None:
        body = _body({"where": where, "fields": fields, "limit": 1000, "cursor": cursor})
        return Call("POST", _index_path(index_id, "documents", "list"), DocumentList, is_safe=True, body=body)
    after = "" if cursor is None else f"&cursor={quote(cursor, safe='')}"
    return Call("GET", f"{_index_path(index_id, 'documents')}?limit=1000{after}", DocumentList, is_safe=True)


def get_document(index_id: UUID | str, doc_id: str) -> Call[StoredDocument]:
    return Call("GET", _index_path(index_id, "documents", doc_id), StoredDocument, is_safe=True)


def count_documents(index_id: UUID | str) -> Call[DocumentCount]:
    return Call("GET", _index_path(index_id, "count"), DocumentCount, is_safe=True)


def facets(
    index_id: UUID | str,
    fields: Iterable[str],
    filter: Mapping[str, Any] | None,
    where: Mapping[str, Any] | None,
    limit: int | None,
) -> Call[Facets]:
    body = _body({"fields": list(fields), "filter": filter, "where": where, "limit": limit})
    return Call("POST", _index_path(index_id, "facets"), Facets, is_safe=True, body=body)


def update_metadata(index_id: UUID | str, doc_id: str, metadata: Mapping[str, Any]) -> Call[StoredDocument]:
    body = _json({"metadata": metadata})
    return Call("PATCH", _index_path(index_id, "documents", doc_id), StoredDocument, is_safe=True, body=body)


def merge_metadata(index_id: UUID | str, doc_id: str, metadata: Mapping[str, Any]) -> Call[StoredDocument]:
    body = _json({"metadata_merge": metadata})
    return Call("PATCH", _index_path(index_id, "documents", doc_id), StoredDocument, is_safe=True, body=body)


def set_expiry(index_id: UUID | str, doc_id: str, expires_at: datetime | str | None) -> Call[StoredDocument]:
    body = _json({"expires_at": None if expires_at is None else time_text(expires_at)})
    return Call("PATCH", _index_path(index_id, "documents", doc_id), StoredDocument, is_safe=True, body=body)


def delete_document(index_id: UUID | str, doc_id: str) -> Call[Deleted]:
    return Call("DELETE", _index_path(index_id, "documents", doc_id), Deleted, is_safe=True)


def delete_documents(
    index_id: UUID | str,
    filter: Mapping[str, Any] | None,
    where: Mapping[str, Any] | None,
    limit: int | None,
    dry_run: bool | None,
) -> Call[DeletedDocuments]:
    path = _index_path(index_id, "documents", "delete")
    body = _body({"filter": filter, "where": where, "limit": limit, "dry_run": dry_run})
    return Call("POST", path, DeletedDocuments, is_safe=True, body=body)


def search(index_id: UUID | str, fields: Mapping[str, Any]) -> Call[Ranked]:
    return Call("POST", _index_path(index_id, "search"), Ranked, is_safe=True, body=_body(fields))


def query(index_id: UUID | str, queries: Iterable[Query]) -> Call[QueryAnswers]:
    body = _json({"queries": [plain(one) for one in queries]})
    return Call("POST", _index_path(index_id, "query"), QueryAnswers, is_safe=True, body=body)


def score(query: str, documents: Iterable[Document], options: Mapping[str, Any]) -> Call[Ranked]:
    given = [plain(document) for document in documents]
    return Call("POST", "/v1/score", Ranked, is_safe=True, body=_body({"query": query, "documents": given, **options}))


def rerank(query: str, texts: list[str], tokens_of_text_max: int) -> Call[Reranked]:
    body = _json({"query": query, "documents": texts, "max_tokens_per_doc": tokens_of_text_max})
    return Call("POST", "/v2/rerank", Reranked, is_safe=True, body=body)


def usage() -> Call[UsageSummary]:
    return Call("GET", "/v1/usage", UsageSummary, is_safe=True)


def usage_days(first: date | None, last: date | None) -> Call[UsageDays]:
    days = {"from": first, "to": last}
    query = "&".join(f"{name}={day.isoformat()}" for name, day in days.items() if day is not None)
    return Call("GET", f"/v1/usage/days?{query}", UsageDays, is_safe=True)


def activity() -> Call[Activity]:
    return Call("GET", "/v1/activity", Activity, is_safe=True)


def readiness() -> Call[Readiness]:
    return Call("GET", "/readyz", Readiness, is_safe=False)


def time_text(moment: datetime | str) -> str:
    if isinstance(moment, str):
        return moment
    if not isinstance(moment, datetime):
        raise MaxsimdError("expires_at: this is no time: pass a datetime, or a string such as 2030-01-01T00:00:00Z")
    if moment.tzinfo is None:
        raise MaxsimdError("expires_at: a time needs a time zone, such as datetime.timezone.utc")
    return moment.isoformat()


def document_json(document: Document) -> bytes:
    return _json(plain(document))


def plain(value: BaseModel | Mapping[str, Any]) -> Mapping[str, Any]:
    """An absent field stays absent; what a customer's own object holds stays as it is."""
    if not isinstance(value, BaseModel):
        return value
    given = ((name, getattr(value, name)) for name in type(value).model_fields if name in value.model_fields_set)
    return {name: _nested(field) for name, field in given if field is not None}


def _nested(field: Any) -> Any:
    """`from` is a word of Python, so the field has another name in the model."""
    return field.model_dump(by_alias=True, exclude_none=True) if isinstance(field, BaseModel) else field


def _body(fields: Mapping[str, Any]) -> bytes:
    given = {name: field for name, field in fields.items() if field is not None}
    return _json({name: plain(field) if isinstance(field, BaseModel) else field for name, field in given.items()})


def _json(value: Any) -> bytes:
    try:
        text = _dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        path, words = _problem(value, ()) or ((), f"the request is no JSON: {error}")
        raise MaxsimdError(f"{_place(value, path)}{words}") from error
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Half an emoji, cut by the caller: the service decides what to make of it.
        return _dumps(value, ensure_ascii=True).encode()


def _dumps(value: Any, *, ensure_ascii: bool) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, allow_nan=False, separators=(",", ":"), default=_known_to_json)


def _known_to_json(value: Any) -> Any:
    """A value that json knows, for one that it does not. Raises a `TypeError` if there is none that says the same."""
    if isinstance(value, (date, time, UUID)) and value == value:
        return to_jsonable_python(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, BaseModel):
        return plain(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    # Numbers of numpy are none of Python's. Their text is the shortest one that reads back as the same number.
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and not isinstance(value, Rational):
        return float(str(value))
    if type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise TypeError(f"JSON has no {type(value).__name__}: pass a dict, a list, a string or a number")


def _problem(value: Any, path: tuple[str, ...]) -> tuple[tuple[str, ...], str] | None:
    """The path of the first value that JSON cannot hold, and why."""
    if len(path) > _LEVELS_MAX:
        return path, "a value that holds itself, or has too many levels, is no JSON"
    if isinstance(value, float):
        return None if isfinite(value) else (path, f"JSON has no {value}")
    if value is None or isinstance(value, (str, int)):
        return None
    members: Iterable[tuple[Any, Any]]
    if isinstance(value, dict):
        for key in value:
            if not (key is None or isinstance(key, (str, int, float))) or key != key:
                return path, f"JSON has no name of type {type(key).__name__}: pass strings"
        members = value.items()
    elif isinstance(value, (list, tuple)):
        members = enumerate(value)
    else:
        try:
            return _problem(_known_to_json(value), path)
        except TypeError as error:
            return path, str(error)
    return next(filter(None, (_problem(member, (*path, str(key))) for key, member in members)), None)


def _place(value: Any, path: tuple[str, ...]) -> str:
    """The path of a field, and the id of the document that it belongs to."""
    doc_id = None
    if len(path) > 1 and path[0] == "documents" and isinstance(value, Mapping):
        document = list(value["documents"])[int(path[1])]
        doc_id = document.get("doc_id") if isinstance(document, Mapping) else None
    words = ".".join(path)
    short = words if len(words) <= _PATH_CHARACTERS_MAX else f"{words[:_PATH_CHARACTERS_MAX]}…"
    of_document = f" (doc_id {json.dumps(doc_id)})" if isinstance(doc_id, str) else ""
    return f"{short}{of_document}: " if short else ""


def _index_path(index_id: UUID | str, *rest: str) -> str:
    return "/v1/indexes/" + "/".join(_segment(segment) for segment in (str(index_id), *rest))


def _segment(text: str) -> str:
    """One segment of a path.

    httpx removes the segments `.` and `..` (RFC 3986 5.2.4), and proxies merge empty ones: the path would name another
    thing, such as the index of a document. `%2e%2e` becomes `%252e%252e`, which is no such segment.
    """
    try:
        quoted = quote(text, safe="")
    except UnicodeEncodeError:
        raise MaxsimdError("an id holds half a surrogate pair, which no address can carry") from None
    if quoted in ("", ".", ".."):
        raise MaxsimdError(f'no id is "{quoted}": nothing was sent')
    return quoted


def given(name: str, value: str | None) -> str:
    """The value, or that of the environment."""
    variable = f"MAXSIMD_{name.upper()}"
    found = os.environ.get(variable) if value is None else value
    if not found:
        meaning = "address" if name == "url" else "API key"
        raise MaxsimdError(f"the {meaning} is missing: pass `{name}`, or set {variable}")
    return found


def checked_url(given: str) -> str:
    """Without a trailing slash; raises on an address that no request may go to."""
    try:
        url = httpx.URL(given)
        host = url.host
    except (httpx.InvalidURL, ValueError):
        raise MaxsimdError("the address is no URL") from None
    if url.scheme not in ("http", "https") or not host:
        raise MaxsimdError("the address must begin with http:// or https://")
    if url.userinfo or url.query or url.fragment:
        raise MaxsimdError("the address takes no credentials, query or fragment")
    if url.port is not None and url.port > 65535:
        raise MaxsimdError("the port of the address is above 65535")
    return str(url.copy_with(query=None, fragment=None)).rstrip("/")


def unusable_proxy(error: Exception) -> MaxsimdError:
    return MaxsimdError(f"a proxy that the environment names cannot be used: {error}")


def headers(api_key: str, user_agent: str | None) -> dict[str, str]:
    # An error about a malformed header value would quote it, and the value is a secret.
    if re.fullmatch(r"[\x21-\x7e]+", api_key) is None:
        raise MaxsimdError("the API key is missing or holds characters that no key has")
    if user_agent is not None and re.fullmatch(r"[\x21-\x7e][\x20-\x7e]*", user_agent) is None:
        raise MaxsimdError("the user agent is empty, begins with a space, or holds characters that are no printable ASCII")
    own = f"maxsimd-python/{version('maxsimd')} python/{platform.python_version()}"
    return {
        "authorization": f"Bearer {api_key}",
        "user-agent": own if user_agent is None else f"{user_agent} {own}",
    }


def read_answer(call: Call[Answer], response: httpx.Response) -> Answer:
    if not response.is_success:
        raise _api_error(response)
    try:
        # Not pydantic's own parser: metadata may hold half an emoji, which that parser refuses.
        return call.answer.model_validate(json.loads(response.content))
    except (ValueError, RecursionError):
        # Its words would quote the answer.
        raise _api_error(response) from None


def failed(url: str, error: httpx.RequestError | httpx.InvalidURL) -> MaxsimdError:
    """The error of an attempt that got no answer."""
    if isinstance(error, httpx.InvalidURL):
        return MaxsimdError(f"no address can carry this request: {error}")
    unconnected = isinstance(error, _UNCONNECTED)
    is_timeout = isinstance(error, httpx.TimeoutException)
    return ConnectionFailed(
        f"no answer from {url} in time" if is_timeout else f"cannot reach {url}: {error or type(error).__name__}",
        code="timeout" if is_timeout else "connection_failed",
        maybe_received=not unconnected,
    )


def _api_error(response: httpx.Response) -> APIError:
    error: dict[str, Any] = {}
    try:
        error = response.json()["error"]
        issues = [Issue.model_validate(issue) for issue in error.get("issues") or ()]
        code, message = str(error["code"]), str(error.get("message", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        issues, code, message = [], "unexpected_response", "this is not an answer of the service: look at the address, and at proxies"
    retry_after = response.headers.get("retry-after", "")
    return error_of_code.get(code, APIError)(
        message,
        status=response.status_code,
        code=code,
        issues=issues,
        request_id=response.headers.get("x-request-id"),
        retry_after_seconds=float(retry_after) if retry_after.isdecimal() else None,
    )
