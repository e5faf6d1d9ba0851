"""What every kind of test server can do."""

from __future__ import annotations

from typing import Protocol


class Server(Protocol):
    """A private server on this machine: `start` returns when it answers, `stop` when it is gone."""

    @property
    def name(self) -> str: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def url(self) -> str:
        """The URL by which an administrator connects."""
        ...


class Factory(Protocol):
    """Makes a server that is not started yet; a durable one flushes to disk as in production."""

    def __call__(self, *, durable: bool = False) -> Server: ...
