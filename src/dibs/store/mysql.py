"""MySQL 8 and MariaDB 10.6 and later: connecting, and what is asked of a server before it is trusted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

from dibs.errors import DatabaseError, DatabaseTooOld, DatabaseUnreachable, DibsError, DriverMissing, WrongDatabase
from dibs.model.json_text import write
from dibs.store.bulk import VALUES
from dibs.store.dialect import Can, Clock, Dialect
from dibs.store.mysql_errors import explain, refuses, replayable
from dibs.store.mysql_migrator import MysqlMigrator
from dibs.store.mysql_url import arguments, places
from dibs.store.server_url import take_apart
from dibs.store.sessions.mysql import OwnMysqlSession

if TYPE_CHECKING:
    import pymysql

LOCK_SECONDS = 20
"""How long a lock is waited for. What another program holds for longer is tried again, and then said."""
CAN = Can(load_in_bulk=True, ring_sleepers=False, make_its_own_tables=False)
_LEVEL = "set session transaction isolation level read committed"
"""Whatever the server's default: at REPEATABLE READ a claim that finds nothing keeps producers from inserting."""
_MODES = "set session sql_mode = 'TRADITIONAL', innodb_lock_wait_timeout = {}, group_concat_max_len = 1048576"
"""Strict, so that what does not fit is refused, and not cut; and room for the ids of a whole stretch of a lane."""
_STATE = "select @@session.{}, cast(@@global.read_only as char) from (select 1) answering"
"""From a table, if only a made-up one: a node that is no member of its Galera cluster refuses that with error 1047."""

_CLUSTERED = "show variables like 'wsrep_on'"
_CAUSAL = "set session wsrep_sync_wait = 1"
"""In a Galera cluster another node may not have applied yet what one has committed, and connections of one program may
lead to several: a settle would then not find what this very program has claimed."""


def _sorted_array(values: Sequence[Any]) -> str:
    """A list as a JSON array in order: rows are locked as they stand in it."""
    return write(sorted(values)).decode()


def _sorted_columns(name: str, **columns: Sequence[Any]) -> dict[str, Any]:
    """A table of values as one JSON parameter, in the order of its first column."""
    return {name: write(sorted(zip(*columns.values(), strict=True), key=itemgetter(0))).decode()}


def dialect(clock: Clock | None = None, kind: type[MysqlDatabase] | None = None) -> Dialect:
    """Their way; `clock` is for tests that own the time."""
    kind = kind or MysqlDatabase
    return Dialect(
        name=kind.name,
        title=kind.title,
        can=CAN,
        now="utc_timestamp(6)" if clock is None else "(timestamp'1970-01-01 00:00:00' + interval :now microsecond)",
        array=_sorted_array,
        columns=_sorted_columns,
        explain=explain,
        replayable=replayable,
        refuses=refuses,
        begin="start transaction",
        form=VALUES,
        clock=clock,
    )


class MysqlDatabase:
    """One MySQL database."""

    name: ClassVar[str] = "mysql"
    title: ClassVar[str] = "MySQL"
    oldest: ClassVar[tuple[int, ...]] = (8, 0, 11)
    audible = False

    def __init__(self, url: str, clock: Clock | None = None) -> None:
        parts = take_apart(url)
        self.shown_url = parts.shown(self.name)
        self.dialect = dialect(clock, type(self))
        self._name = parts.database
        self._places = list(places(parts))
        self._arguments = arguments(parts)

    def connect(self) -> OwnMysqlSession:
        """A new connection in autocommit mode, to the first server that answers and accepts writes."""
        return OwnMysqlSession(self._open(), self.dialect)

    def is_at(self, place: str) -> bool:
        """Whether a database of that name can be this one; the same name on another server cannot be told."""
        return place.lower() == self._name.lower()

    def exists(self) -> bool:
        """A server does not make databases by itself: connecting tells."""
        return True

    def pooled(self, _session: OwnMysqlSession) -> bool:
        """What poolers of MySQL there are keep the state of a session, or give it a connection of its own."""
        return False

    def migrator(self, session: OwnMysqlSession) -> MysqlMigrator:
        """Who changes the tables. That may take longer than any other statement."""
        return MysqlMigrator(session.connection, lambda: self._open(read_timeout=None))

    def bell(self) -> None:
        """Nobody can ring here: idle workers poll."""
        return

    def _open(self, **changes: Any) -> pymysql.Connection[Any]:
        refused: DibsError | None = None
        for place in self._places:
            try:
                return self._checked(self._connected({**self._arguments, **place, **changes}))
            except DatabaseUnreachable as error:
                refused = refused or error
        raise refused or DatabaseUnreachable(f"{self.shown_url} names no server.")

    def _connected(self, given: dict[str, Any]) -> pymysql.Connection[Any]:
        try:
            import pymysql
        except ImportError as error:
            raise DriverMissing(
                f"The driver for {self.title}, PyMySQL, is not installed.", "Run: pip install 'dibs[mysql]'"
            ) from error
        try:
            return pymysql.connect(**given)
        except (pymysql.Error, OSError) as error:
            raise explain(error) or DatabaseUnreachable(f"{self.title} cannot be reached: {error}.") from error

    def _checked(self, connection: pymysql.Connection[Any]) -> pymysql.Connection[Any]:
        import pymysql

        try:
            self._check(connection)
        except pymysql.Error as error:
            connection.close()
            raise explain(error) or DatabaseUnreachable(f"{self.title} cannot be reached: {error}.") from error
        except DibsError:
            connection.close()
            raise
        return connection

    def _check(self, connection: pymysql.Connection[Any]) -> None:
        """The kind and age of the server, READ COMMITTED, and whether it accepts writes."""
        with connection.cursor() as cursor:
            cursor.execute("select version()")
            [(said,)] = cursor.fetchall()
            version = self._version(said)
            cursor.execute(_LEVEL)
            cursor.execute(_MODES.format(LOCK_SECONDS))
            cursor.execute(_CLUSTERED)
            if dict(cursor.fetchall()).get("wsrep_on") == "ON":
                cursor.execute(_CAUSAL)
            cursor.execute(_STATE.format(self.isolation(version)))
            [(level, read_only)] = cursor.fetchall()
        if level != "READ-COMMITTED":
            raise DatabaseError(
                f"This connection works at {level}, although READ COMMITTED was asked for.",
                "Look at what stands between dibs and the server: it drops SET SESSION TRANSACTION.",
            )
        if read_only not in ("0", "OFF"):
            raise DatabaseUnreachable("The server is read-only (a replica?).", "Connect to the primary.")

    def _version(self, said: str) -> tuple[int, ...]:
        is_mariadb = "mariadb" in said.lower()
        if is_mariadb != issubclass(type(self), MariadbDatabase):
            found, scheme = ("MariaDB", "mariadb") if is_mariadb else ("MySQL", "mysql")
            raise WrongDatabase(
                f"The URL says {self.title}, but the server is {found} ({said}): they differ in what dibs sends.",
                f"Write {scheme}:// instead.",
            )
        version = tuple(map(int, re.findall(r"\d+", said)[:3]))
        if version < self.oldest:
            raise DatabaseTooOld(
                f"The server is {self.title} {said}.", f"dibs needs {'.'.join(map(str, self.oldest))} or later."
            )
        return version

    def isolation(self, _version: tuple[int, ...]) -> str:
        """The variable that tells a session's isolation level."""
        return "transaction_isolation"


class MariadbDatabase(MysqlDatabase):
    """One MariaDB database."""

    name: ClassVar[str] = "mariadb"
    title: ClassVar[str] = "MariaDB"
    oldest: ClassVar[tuple[int, ...]] = (10, 6)

    def isolation(self, version: tuple[int, ...]) -> str:
        """It took MySQL's name for it in 11.1."""
        return "transaction_isolation" if version >= (11, 1) else "tx_isolation"
