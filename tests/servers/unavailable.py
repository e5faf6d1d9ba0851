"""The one way in which a test server can be missing."""

from __future__ import annotations


class ServerUnavailable(Exception):
    """The named server cannot be started here: `reason` says why, `remedy` what to do about it.

    Whether that is a skip (a laptop) or a failure (CI=true) is for whoever asked to decide.
    """

    def __init__(self, name: str, reason: str, remedy: str) -> None:
        super().__init__(name, reason, remedy)
        self.name = name
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.name} is not available: {self.reason} Remedy: {self.remedy}"
