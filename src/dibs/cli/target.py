"""Which database and which application a command works on."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dibs import Dibs
    from dibs.cli.application import Found


@dataclass(slots=True)
class Target:
    """The common options of a command line, and what they lead to."""

    url: str | None = None
    app: str | None = None
    debug: bool = False

    def door(self, *, create: bool = False, imports: bool = True) -> Dibs:
        """The database to look at: the URL given or configured, else that of the application, else the default.

        Nobody's code is imported when a URL is known, or without `imports`. Without `create`, an embedded database
        that does not exist yet is refused instead of made.
        """
        from dibs import Dibs
        from dibs.cli import application
        from dibs.door import settings

        url = settings.find("url", self.url)
        found = None
        if imports and (self.app or url.origin == "default"):
            found = application.find(self.app) if self.app else application.find_if_any()
        return self._opened(found.dibs if found else Dibs(str(url.value)), create)

    def application(self) -> Found:
        """The application with its tasks, or `AppNotFound` with all that was tried."""
        from dibs.cli import application
        from dibs.cli.configured import whole
        from dibs.cli.problems import problem
        from dibs.errors import Conflict

        whole("payload_limit", None, 1, 2**53)  # told here, not as the fault of the module that meets it

        if self.url:
            os.environ["DIBS_URL"] = self.url
        found = application.find(self.app)
        if self.url and not _same_place(self.url, found.dibs):
            raise problem(Conflict, "url-conflict", name=found.name, theirs=found.dibs.url)
        self._opened(found.dibs, create=True)
        return found

    def _opened(self, door: Dibs, create: bool) -> Dibs:
        from dibs.cli.problems import problem
        from dibs.errors import DatabaseMissing

        if not create and not door.exists:
            raise problem(DatabaseMissing, "file-missing", url=door.url)
        context = click.get_current_context(silent=True)
        if context is not None:  # there is none while a shell completes a word
            context.call_on_close(door.close)
        return door


def _same_place(url: str, door: Dibs) -> bool:
    from dibs import Dibs

    return Dibs(url).url == door.url
