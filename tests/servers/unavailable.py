"""The one way in which a test server can be missing."""

from __future__ import annotations

import os


class ServerUnavailable(Exception):
    """The named server cannot be started here: `reason` says why, `remedy` what to do about it.

    Whether that is a skip or a failure is for whoever asked to decide: see `must_be_there`.
    """

    def __init__(self, name: str, reason: str, remedy: str) -> None:
        super().__init__(name, reason, remedy)
        self.name = name
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.name} is not available: {self.reason} Remedy: {self.remedy}"


def must_be_there(name: str) -> bool:
    """Whether a run fails without this server: where CI=true, unless `DIBS_ALLOW_MISSING` names it (with commas)."""
    allowed = os.environ.get("DIBS_ALLOW_MISSING", "").replace(" ", "").split(",")
    return os.environ.get("CI") == "true" and name not in allowed
