"""How many requests of an import are in flight, and how many documents each of them has: no input, no output, no clock.

A service that is short of processor time passes the deadline of an upsert, and all work on that request is thrown away.
The same request again would end the same way. So the import first sends fewer requests at once, then smaller ones, down to
one document. It grows again slowly, first the requests and then their number. The TypeScript client has the same in
`pace.ts`, and `test/clients/cases/pace.json` has the cases for both.
"""

from __future__ import annotations

from typing import Literal

DOCUMENTS_MAX = 50
_STORED_PER_STEP = 20
"""Batches that must be stored before the import grows by a step."""
_ATTEMPTS_ALONE = 3
"""A document that comes late so often in a request of its own is given up."""
_GIVEN_UP_IN_ROW_MAX = 3
"""So many documents that are given up in a row end the import, because the service is not able to store any."""

Verdict = int | Literal["give up", "end"]
"""A number says: send it again, in parts of so many documents."""


class Pace:
    def __init__(self, requests_max: int) -> None:
        self._requests_max = max(1, requests_max)
        self.requests = self._requests_max
        """Requests in flight at once."""
        self.documents = DOCUMENTS_MAX
        """Documents of one request."""
        self._stored = 0
        self._given_up_in_row = 0

    def stored(self) -> None:
        self._given_up_in_row = 0
        self._stored += 1
        if self._stored % _STORED_PER_STEP != 0:
            return
        if self.documents < DOCUMENTS_MAX:
            self.documents = min(DOCUMENTS_MAX, self.documents * 2)
        else:
            self.requests = min(self._requests_max, self.requests + 1)

    def refused(self) -> None:
        """The concurrency limit of the tenant refused a request."""
        self._stored = 0
        self.requests = max(1, self.requests - 1)

    def late(self, *, documents: int, beside: int, lates: int) -> Verdict:
        """The service needed more than half of its deadline for a batch, and did not store it.

        `beside` is the most requests that were in flight at once with it. `lates` says how often it came late before, or the
        batch that it was cut out of; a document alone begins anew.
        """
        half = max(1, documents // 2)
        self._stored = 0
        if beside > 0:
            self.requests = max(1, self.requests - 1)
        else:
            self.requests = 1
            self.documents = min(self.documents, half)
        if documents > 1:
            return documents if beside > 0 and lates == 0 else half
        if lates + 1 < _ATTEMPTS_ALONE:
            return 1
        self._given_up_in_row += 1
        return "give up" if self._given_up_in_row < _GIVEN_UP_IN_ROW_MAX else "end"
