"""MySQL and MariaDB."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from bench.grounds.database import Database
from bench.grounds.ground import Ground
from bench.reference.loop import Connection, Reference
from bench.reference.mysql import MysqlReference
from bench.reference.mysqlclient import MysqlclientReference
from tests.servers import MariadbServer, MysqlServer

CACHE = {"innodb-buffer-pool-size": "1G"}
WRITING_OUT = {
    "innodb_io_capacity_max": 20_000,
    "innodb_io_capacity": 20_000,
    "innodb_max_dirty_pages_pct_lwm": 0,
    "innodb_max_dirty_pages_pct": 0,
}
"""In this order, and back in the other: the second must not exceed the first, nor the third the fourth."""
LOOK_SECONDS = 0.25
IDLE_SHARE = 0.1
"""Of a core: below it, nothing is purged or written any more."""
FEW_PAGES = 20
SETTLING_SECONDS = 30.0


class MysqlDatabase(Database):
    """dibs' tables stand in the application's own database."""

    prefix = "dibs_"
    epoch = "timestampdiff(microsecond, timestamp'1970-01-01 00:00:00', {}) / 1e6"
    _looks = 0

    def settle_down(self, *tables: str, vacuum: bool = False) -> None:  # noqa: ARG002 - what is dead is always purged
        """Statistics; then wait until all pages are written and what was deleted is purged.

        There is no statement for either, but the server does both by itself, so we wait until it does nothing.
        """
        for table in tables:
            self.execute(f"analyze table {table}")
        with self._writing_out():
            deadline = time.monotonic() + SETTLING_SECONDS
            while self._busy() and time.monotonic() < deadline:
                pass

    @contextmanager
    def _writing_out(self) -> Iterator[None]:
        """While the block runs, pages are written as fast as may be."""
        before = {name: self.value(f"select @@global.{name}") for name in WRITING_OUT}
        for name, value in WRITING_OUT.items():
            self.execute(f"set global {name} = {value}")
        yield
        for name, value in reversed(before.items()):
            self.execute(f"set global {name} = {value}")

    def _busy(self) -> bool:
        before = self.server.cpu_seconds()
        time.sleep(LOOK_SECONDS)
        return self.server.cpu_seconds() - before > IDLE_SHARE * LOOK_SECONDS or self._dirty() > FEW_PAGES

    def _dirty(self) -> int:
        return int(self.execute("show global status like 'Innodb_buffer_pool_pages_dirty'")[0][1])

    @contextmanager
    def old_snapshot(self) -> Iterator[None]:
        """A transaction that has a read view and does not end."""
        with closing(self.reference.connect(self.url)) as other, other.cursor() as cursor:
            cursor.execute("set session transaction isolation level repeatable read")
            cursor.execute("start transaction with consistent snapshot")
            yield

    def statements(self) -> int:
        """What clients have sent to the server, without what was sent to ask for it."""
        self._looks += 1
        return int(self.execute("show global status like 'Questions'")[0][1]) - self._looks


class MysqlGround(Ground):
    """MySQL 9.7, with its binary log."""

    kind = "mysql"
    family = "MySQL"
    version = "9.7"
    reference = MysqlReference
    databases = MysqlDatabase

    def server(self) -> MysqlServer | MariadbServer:
        """With innodb_flush_log_at_trx_commit and sync_binlog at 1."""
        return MysqlServer(durable=True, settings=CACHE)

    def drivers(self) -> list[type[Reference]]:
        """Two, if somebody has compiled the other one."""
        return [MysqlReference, *([MysqlclientReference] if MysqlclientReference.installed() else [])]

    def drop(self, admin: Connection, name: str) -> None:
        """The binary log of all that was done to it goes too: a million rows are hundreds of megabytes."""
        with admin.cursor() as cursor:
            cursor.execute(f"drop database if exists {name}")
            cursor.execute("flush binary logs")
            cursor.execute("purge binary logs before now()")


class MariadbGround(MysqlGround):
    """MariaDB 10.11, which by default keeps no binary log."""

    family = "MariaDB"
    version = "10.11"

    def server(self) -> MariadbServer:
        """With innodb_flush_log_at_trx_commit at 1."""
        return MariadbServer(durable=True, settings=CACHE)
