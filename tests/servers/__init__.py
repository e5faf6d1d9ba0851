"""Real database servers for tests, benchmarks and chaos: fetched, started, and gone when the run is gone.

    with running(["postgres18", "mysql97"]) as urls:  # name -> administrator's URL
    with PostgresServer(18, durable=True) as server:  # one with .kill(), .restart(), .cpu_seconds()

`DIBS_TEST_SERVERS` (JSON, name -> URL), when set, is all the servers there are for this run: nothing is
started, and a name that it doesn't hold is unavailable. `tests/run.py` sets it, so that a whole run shares
its servers. Only the standard library is used: this runs before any virtual environment exists.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from .mysql import MariadbServer, MysqlServer
from .pgbouncer import PgbouncerServer
from .postgres import PostgresServer
from .server import Factory, Server
from .unavailable import ServerUnavailable, must_be_there

__all__ = [
    "FACTORIES",
    "Fleet",
    "MariadbServer",
    "MysqlServer",
    "PgbouncerServer",
    "PostgresServer",
    "Server",
    "ServerUnavailable",
    "fleet",
    "must_be_there",
    "running",
]

FACTORIES: dict[str, Factory] = {
    **{f"postgres{major}": partial(PostgresServer, major) for major in (14, 15, 16, 17, 18)},
    "mysql97": MysqlServer,
    "mariadb1011": MariadbServer,
    "pgbouncer": PgbouncerServer,
}


@dataclass
class Fleet:
    """Servers by name, as URLs, and what could not be had."""

    urls: dict[str, str] = field(default_factory=dict)
    missing: list[ServerUnavailable] = field(default_factory=list)


@contextmanager
def running(names: Sequence[str], *, durable: bool = False) -> Iterator[dict[str, str]]:
    """All these servers, as name -> URL, while the block runs; ServerUnavailable if one can't be had."""
    with fleet(names, durable=durable) as servers:
        if servers.missing:
            raise servers.missing[0]
        yield servers.urls


@contextmanager
def fleet(names: Sequence[str], *, durable: bool = False) -> Iterator[Fleet]:
    """As many of these servers as can be had, started side by side."""
    given = os.environ.get("DIBS_TEST_SERVERS")
    if given is not None:
        yield _given(names, json.loads(given))
        return
    servers = [FACTORIES[name](durable=durable) for name in names if name in FACTORIES]
    unknown = [_unknown(name) for name in names if name not in FACTORIES]
    try:
        with ThreadPoolExecutor(max_workers=max(1, len(servers))) as pool:
            failed = [reason for reason in pool.map(_start, servers) if reason is not None]
        absent = {reason.name for reason in failed}
        urls = {server.name: server.url() for server in servers if server.name not in absent}
        yield Fleet(urls, unknown + failed)
    finally:
        for server in servers:
            server.stop()


def _given(names: Sequence[str], urls: dict[str, str]) -> Fleet:
    missing = [
        ServerUnavailable(name, "DIBS_TEST_SERVERS does not hold it.", "unset that, to have it started.")
        for name in names
        if name not in urls
    ]
    return Fleet({name: urls[name] for name in names if name in urls}, missing)


def _unknown(name: str) -> ServerUnavailable:
    return ServerUnavailable(name, "no such server is known.", f"choose from {', '.join(FACTORIES)}.")


def _start(server: Server) -> ServerUnavailable | None:
    try:
        server.start()
    except ServerUnavailable as unavailable:
        # Named by what was asked for: the reason may lie in something that several servers share.
        return ServerUnavailable(server.name, unavailable.reason, unavailable.remedy)
    return None
