"""Whether and when a request is sent again.

`Retry-After` is a lower bound; jitter goes on top, so that clients which were given the same moment do not come back in
one. Without it: exponential backoff with full jitter
(https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).

A request that is not safe to repeat is sent again only when the service certainly did not carry it out: it was refused
for its rate or concurrency (429), or no connection was made. One that can be done only once is sent again after 503 too,
most of which are said before anything is done.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ldexp

from .errors import APIError, ConnectionFailed

OnRetry = Callable[[Exception, float], None]

CONNECT_SECONDS_MAX = 4.0
"""One attempt ends within the 5 s of a service that was never reached."""
UPSERT_DEADLINE = 120.0
"""The deadline of an upsert in the service (`MAXSIMD_TIMEOUT_UPSERT_MS`), by default."""
_BACKOFF_BASE = 0.5
_BACKOFF_MAX = 30.0
_JITTER_MAX = 1.0
_BROKEN_ATTEMPTS_MAX = 3
"""Of a request that the service fails on (500): more would hardly help."""
_PASSING = frozenset({408, 502, 503, 504})


def repeat_seconds_max(*, was_connected: bool, attempt_seconds: float) -> float:
    """For all attempts of a request together.

    An address where nobody ever answered is most likely wrong; the next attempt, which may take as long as the last one,
    must have room within 5 s.
    """
    return 120.0 if was_connected else 5.0 - attempt_seconds


def is_refused_for_now(error: Exception) -> bool:
    """The service is well, and asks the tenant for patience."""
    return isinstance(error, APIError) and error.status == 429 and error.code != "usage_limit_exceeded"


class LateError(Exception):
    """An attempt that came to nothing after more than `late_after` of its call.

    The service is too slow for this request, so the same request again would most likely end the same way.
    """

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


def maybe_slow(error: Exception) -> bool:
    """Whether the failure of an attempt tells of a slow service, if it came late enough."""
    if isinstance(error, ConnectionFailed):
        return error.code == "timeout"
    return isinstance(error, APIError) and error.status in _PASSING


def repeat_delay(
    error: Exception, *, attempts: int, is_safe: bool, is_unique: bool = False, random: Callable[[], float]
) -> float | None:
    """Seconds before attempt `attempts + 1`; `None` = give up. `random` is uniform in [0, 1)."""
    backoff = random() * min(_BACKOFF_MAX, ldexp(_BACKOFF_BASE, min(attempts - 1, 16)))
    if isinstance(error, ConnectionFailed):
        return 0.1 + backoff if is_safe or not error.maybe_received else None
    if not isinstance(error, APIError):
        return None
    retry_after = error.retry_after_seconds or 0.0
    if is_refused_for_now(error):
        return max(1.0, retry_after) + random() * _JITTER_MAX
    if not is_safe and not (is_unique and error.status == 503):
        return None
    if error.status in _PASSING:
        return max(0.1, retry_after) + backoff
    if error.status >= 500 and attempts < _BROKEN_ATTEMPTS_MAX:
        return 0.1 + backoff
    return None
