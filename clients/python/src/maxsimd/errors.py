"""What a call may raise. Decide from the class and `code`; messages are for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from .models import Issue

if TYPE_CHECKING:
    from .imports import ImportReport


class MaxsimdError(Exception):
    """All errors of this package."""


class APIError(MaxsimdError):
    """The service answered with an error, or whoever answered does not speak this API (`unexpected_response`)."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str,
        issues: Sequence[Issue] = (),
        request_id: str | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        details = (f"{issue.path}: {issue.message}" if issue.path else issue.message for issue in issues)
        request = "" if request_id is None else f" (request {request_id})"
        # The message is that of the first issue.
        said = "; ".join(dict.fromkeys((message, *details)))
        super().__init__(f"{status} {code}: {said}{request}")
        self.status = status
        self.code = code
        self.issues = tuple(issues)
        self.request_id = request_id
        """For logs and support; not a secret."""
        self.retry_after_seconds = retry_after_seconds


class AuthenticationError(APIError):
    """The key is missing, wrong or revoked."""


class TenantSuspendedError(APIError):
    """The tenant is suspended."""


class PermissionDeniedError(APIError):
    """The API key may only read."""


class NotFoundError(APIError):
    """There is no such thing for this tenant."""


class InvalidRequestError(APIError):
    """`issues` say what is wrong; without any, the allowance of stored documents is exceeded."""


class RateLimitError(APIError):
    """Too many requests a minute, or at once."""


class UsageLimitError(APIError):
    """The tokens of this month are used up."""


class InternalError(APIError):
    """The service failed on this request."""


class ServiceUnavailableError(APIError):
    """For now."""


class ConnectionFailed(MaxsimdError):
    """No answer came."""

    def __init__(self, message: str, *, code: Literal["timeout", "connection_failed"], maybe_received: bool) -> None:
        super().__init__(message)
        self.code = code
        self.maybe_received = maybe_received
        """Whether the service may have received the request, and done what it asks."""


class ImportStopped(MaxsimdError):
    """An import ended early: `__cause__` says why. Importing the same again is safe."""

    def __init__(self, cause: BaseException, report: ImportReport) -> None:
        super().__init__(f"the import stopped after {report.documents} documents: {cause}")
        self.report = report


error_of_code: dict[str, type[APIError]] = {
    "authentication_failed": AuthenticationError,
    "tenant_suspended": TenantSuspendedError,
    "permission_denied": PermissionDeniedError,
    "not_found": NotFoundError,
    "validation_error": InvalidRequestError,
    "rate_limit_exceeded": RateLimitError,
    "concurrency_limit_exceeded": RateLimitError,
    "usage_limit_exceeded": UsageLimitError,
    "internal_error": InternalError,
    "service_unavailable": ServiceUnavailableError,
}
