"""What dibs asks of a MySQL or MariaDB server before it trusts it, and how its URL is read."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Callable
from contextlib import closing
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pymysql
import pytest

from dibs import Dibs
from dibs.errors import (
    DatabaseError,
    DatabaseMissing,
    DatabaseTooOld,
    DatabaseUnreachable,
    DriverMissing,
    InvalidOption,
    InvalidURL,
    NoRights,
    WrongDatabase,
)
from dibs.store import mysql as module
from dibs.store.mysql import MariadbDatabase, MysqlDatabase
from tests.conftest import Make
from tests.support.callers import Caller
from tests.support.mysql_callers import ON_MYSQL
from tests.support.mysql_database import Connection, Mysql, arguments

Change = Callable[..., None]


@pytest.fixture
def at_first(monkeypatch: pytest.MonkeyPatch) -> Change:
    """Lets every connection of dibs' own begin with these commands, as if the server had them as its defaults."""

    def change(*commands: str) -> None:
        def connected(self: MysqlDatabase, given: dict[str, Any]) -> Any:
            connection = original(self, given)
            for command in commands:
                with connection.cursor() as cursor:
                    cursor.execute(command)
            return connection

        monkeypatch.setattr(MysqlDatabase, "_connected", connected)

    original = MysqlDatabase._connected
    return change


def _shown(jobs: Dibs, variable: str) -> Any:
    with jobs.store.session() as (session, _):
        connection: Any = session.connection  # type: ignore[attr-defined]
        with connection.cursor() as cursor:
            cursor.execute(f"show session variables like '{variable}'")
            return cursor.fetchall()[0][1]


LEVEL = {"mysql": "transaction_isolation", "mariadb": "tx_isolation"}


@pytest.mark.parametrize("scheme", ["mysql", "mariadb"])
def test_a_missing_pymysql_is_named_with_its_extra(dibs_on: Make, monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    jobs = dibs_on(f"{scheme}://localhost/app")
    monkeypatch.setitem(sys.modules, "pymysql", None)
    with pytest.raises(DriverMissing, match=r"pip install 'dibs\[mysql\]'"):
        jobs.enqueue("mail")


@pytest.mark.parametrize("level", ["repeatable read", "serializable", "read uncommitted"])
def test_connections_of_our_own_work_at_read_committed_whatever_the_default(
    mysql: Mysql, dibs_on: Make, at_first: Change, level: str
) -> None:
    at_first(f"set session transaction isolation level {level}")
    assert _shown(dibs_on(mysql.url), LEVEL[mysql.dialect]) == "READ-COMMITTED"


def test_a_connection_that_stays_at_another_level_is_refused(
    mysql: Mysql, dibs_on: Make, at_first: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_first("set session transaction isolation level repeatable read")
    monkeypatch.setattr(module, "_LEVEL", "do 0")
    with pytest.raises(DatabaseError, match="works at REPEATABLE-READ") as raised:
        dibs_on(mysql.url).enqueue("mail")
    assert "between dibs and the server" in raised.value.remedy


MODES = [
    "",
    "ANSI",
    "ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES",
    "ONLY_FULL_GROUP_BY,PAD_CHAR_TO_FULL_LENGTH,HIGH_NOT_PRECEDENCE",
    "TRADITIONAL,NO_UNSIGNED_SUBTRACTION,IGNORE_SPACE",
]
TRICKY = "quote' double\" back\\slash \\' 100 %s %% \t\n é\U0001f4ee"


@pytest.mark.parametrize("mode", MODES)
def test_no_sql_mode_of_a_server_or_a_caller_changes_what_is_stored(
    mysql: Mysql, dibs_on: Make, at_first: Change, mode: str
) -> None:
    at_first(f"set session sql_mode = '{mode}'", "set session time_zone = '-07:00'")
    jobs = dibs_on(mysql.url)
    with closing(mysql.connect()) as caller:
        caller.execute(f"set session sql_mode = '{mode}', time_zone = '+05:45'")
        caller.execute("begin")
        mine = jobs.enqueue("mail", {"text": TRICKY}, unique=TRICKY, connection=caller)
        jobs.enqueue_many([jobs.job("mail", {"text": TRICKY}, delay="1h")], connection=caller)
        caller.execute("commit")
    assert jobs.enqueue("mail", unique=TRICKY).id == mine.id
    [job] = jobs.dequeue()
    assert (job.payload, job.unique_key) == ({"text": TRICKY}, TRICKY)
    assert abs((job.created_at - jobs.clock()).total_seconds()) < 30
    jobs.nack(job, TRICKY, retry_in=0)
    assert jobs.get(job.id).last_error == TRICKY
    jobs.ack(jobs.dequeue()[0], TRICKY)
    assert jobs.get(job.id).result == TRICKY
    assert jobs.stats().finished == [("default", "completed", 1)]


def test_the_other_kind_of_server_is_recognised_with_the_scheme_to_write(mysql: Mysql, dibs_on: Make) -> None:
    other = {"mysql": "mariadb", "mariadb": "mysql"}[mysql.dialect]
    with pytest.raises(WrongDatabase, match="but the server is") as raised:
        dibs_on(mysql.url.replace(mysql.dialect, other, 1)).enqueue("mail")
    assert f"{mysql.dialect}://" in raised.value.remedy


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (MysqlDatabase, "5.7.44-log"),
        (MysqlDatabase, "8.0.4-rc"),
        (MariadbDatabase, "10.5.27-MariaDB-0+deb11u1"),
        (MariadbDatabase, "5.5.68-MariaDB"),
    ],
)
def test_a_server_that_is_too_old_is_refused_with_its_version(kind: type[MysqlDatabase], said: str) -> None:
    with pytest.raises(DatabaseTooOld, match=said.partition("-")[0]) as raised:
        kind("any://h/db")._version(said)
    assert raised.value.remedy.startswith("dibs needs ")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (MysqlDatabase, "8.0.11"),
        (MysqlDatabase, "9.7.4-2"),
        (MariadbDatabase, "10.6.0-MariaDB"),
        (MariadbDatabase, "12.1.2-MariaDB-ubu2404"),
    ],
)
def test_a_server_that_is_young_enough_is_accepted(kind: type[MysqlDatabase], said: str) -> None:
    assert kind("any://h/db")._version(said) >= kind.oldest


def test_a_replica_that_only_reads_is_no_place_for_jobs(
    mysql: Mysql, dibs_on: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the whole server were read-only: it is not ours alone."""
    monkeypatch.setattr(module, "_STATE", "select @@session.{}, 'ON'")
    with pytest.raises(DatabaseUnreachable, match="read-only"):
        dibs_on(mysql.url).enqueue("mail")


def test_a_socket_of_the_machine_is_used(mysql: Mysql, dibs_on: Make) -> None:
    [(folder,)] = mysql.query("select @@datadir")
    [(name,)] = mysql.query("select @@socket")
    path = name if name.startswith("/") else folder + name
    database = mysql.url.rpartition("/")[2]
    mysql.query("create user dibs_local@localhost identified by 'x'")
    mysql.query(f"grant all on {database}.* to dibs_local@localhost")
    try:
        jobs = dibs_on(f"{mysql.dialect}://dibs_local:x@localhost/{database}?unix_socket={quote(path)}")
        assert jobs.enqueue("mail").status() == "ready"
        jobs.close()
    finally:
        mysql.query("drop user dibs_local@localhost")


@pytest.mark.parametrize("password", ["p@ss:w/rd", "100%25", "é\U0001f4ee'\"\\", " ", "a+b&c=d?e#f"])
def test_a_password_may_hold_any_letter(mysql: Mysql, dibs_on: Make, password: str) -> None:
    written = password.replace("\\", "\\\\").replace("'", "\\'")
    mysql.query(f"create user dibs_speaker@'127.0.0.1' identified by '{written}'")
    try:
        mysql.query("grant all on *.* to dibs_speaker@'127.0.0.1'")
        place = mysql.url.rpartition("@")[2]
        jobs = dibs_on(f"{mysql.dialect}://dibs_speaker:{quote(password, safe='')}@{place}")
        assert jobs.enqueue("mail").created
        assert quote(password, safe="") not in jobs.url
        jobs.close()
    finally:
        mysql.query("drop user dibs_speaker@'127.0.0.1'")


def test_a_login_a_database_and_rights_that_are_missing_are_named(mysql: Mysql, dibs_on: Make) -> None:
    server, _, _ = mysql.url.rpartition("/")
    with pytest.raises(DatabaseMissing, match="no_such_database"):
        dibs_on(f"{server}/no_such_database").enqueue("mail")
    with pytest.raises(DatabaseUnreachable, match="no_such_user"):
        dibs_on(mysql.url.replace("root:", "no_such_user:")).enqueue("mail")
    database = mysql.url.rpartition("/")[2]
    mysql.query("create user dibs_reader@'127.0.0.1' identified by 'x'")
    mysql.query(f"grant select on {database}.* to dibs_reader@'127.0.0.1'")
    try:
        reader = dibs_on(mysql.url.replace("root:dibs@", "dibs_reader:x@"))
        assert reader.count() == 0
        with pytest.raises(NoRights, match="denied"):
            reader.enqueue("mail")
        reader.close()
    finally:
        mysql.query("drop user dibs_reader@'127.0.0.1'")


def test_tls_is_what_the_url_says(dibs_on: Make, open_database: Callable[[str], Mysql]) -> None:
    mysql = open_database("mysql97")
    [(folder,)] = mysql.query("select @@datadir")
    assert _shown_status(dibs_on(mysql.url)) != ""  # preferred
    assert _shown_status(dibs_on(f"{mysql.url}?ssl_mode=required")) != ""
    assert _shown_status(dibs_on(f"{mysql.url}?ssl_ca={folder}ca.pem")) != ""
    with pytest.raises(DatabaseUnreachable, match=r"(?i)certificate"):
        dibs_on(f"{mysql.url}?ssl_ca={folder}ca.pem&ssl_mode=verify_identity").enqueue("mail")  # made for no host
    with pytest.raises(DatabaseUnreachable, match=r"(?i)certificate"):
        dibs_on(f"{mysql.url}?ssl_mode=verify_ca").enqueue("mail")  # signed by nobody we know


def test_tls_that_is_required_and_not_there_is_refused(dibs_on: Make, open_database: Callable[[str], Mysql]) -> None:
    mariadb = open_database("mariadb1011")
    assert _shown_status(dibs_on(mariadb.url)) == ""
    assert _shown_status(dibs_on(f"{mariadb.url}?ssl_mode=disabled")) == ""
    with pytest.raises(DatabaseUnreachable, match=r"(?i)ssl|tls"):
        dibs_on(f"{mariadb.url}?ssl_mode=required").enqueue("mail")


def _shown_status(jobs: Dibs) -> str:
    with jobs.store.session() as (session, _):
        connection: Any = session.connection  # type: ignore[attr-defined]
        with connection.cursor() as cursor:
            cursor.execute("show session status like 'Ssl_cipher'")
            return str(cursor.fetchall()[0][1])


@pytest.mark.parametrize(
    ("tail", "words"),
    [
        ("h", "names no database"),
        ("h/db?timeout=3", "'timeout' is no option"),
        ("h/db?read_timeout=0", "no number of seconds"),
        ("h/db?connect_timeout=soon", "no number of seconds"),
        ("h/db?ssl_mode=perhaps", "is unknown"),
        ("h/db?ssl_ca=/no/such/file", "cannot be read"),
        ("h/db?charset=latin1", "cannot hold"),
        ("h:port/db", "no port"),
    ],
)
@pytest.mark.parametrize("scheme", ["mysql", "mariadb"])
def test_a_url_that_cannot_be_meant_is_refused(scheme: str, tail: str, words: str) -> None:
    with pytest.raises(InvalidURL, match=words) as raised:
        Dibs(f"{scheme}://u:secret@{tail}")
    assert "secret" not in str(raised.value)


def test_a_server_that_does_not_answer_is_given_up(dibs_on: Make) -> None:
    for url in ("mysql://u:secret@127.0.0.1:1/db", "mariadb://u:secret@[::1]:1/db?connect_timeout=2"):
        jobs = dibs_on(url)
        with pytest.raises(DatabaseUnreachable, match="cannot be reached") as raised:
            jobs.enqueue("mail")
        assert "secret" not in f"{raised.value}{jobs.url}{jobs!r}"


def test_the_first_of_many_servers_that_accepts_writes_is_used(mysql: Mysql, dibs_on: Make) -> None:
    login, _, place = mysql.url.rpartition("@")
    assert dibs_on(f"{login}@127.0.0.1:1,{place}").enqueue("mail").created


def test_a_silent_server_is_noticed(mysql: Mysql, dibs_on: Make) -> None:
    jobs = dibs_on(f"{mysql.url}?read_timeout=1")
    with jobs.store.session() as (session, _):
        with pytest.raises(pymysql.err.OperationalError, match="timed out"):
            session.connection.cursor().execute("select sleep(30)")  # type: ignore[attr-defined]
        assert session.broken


def test_a_connection_whose_letters_cannot_hold_a_job_is_refused(mysql: Mysql, dibs_on: Make) -> None:
    jobs = dibs_on(mysql.url)
    with closing(mysql.connect()) as caller:
        caller.set_character_set("latin1")
        assert jobs.enqueue("mail", {"text": "plain"}, connection=caller).created
        with pytest.raises(InvalidOption, match="speaks latin1"):
            jobs.enqueue("mail", {"text": "船"}, connection=caller)
    assert jobs.count() == 1


def test_the_context_of_tls_checks_what_the_mode_says() -> None:
    def context(mode: str) -> ssl.SSLContext:
        found: ssl.SSLContext = MysqlDatabase(f"mysql://h/db?ssl_mode={mode}")._arguments["ssl"]
        return found

    assert (context("required").verify_mode, context("required").check_hostname) == (ssl.CERT_NONE, False)
    assert (context("verify_ca").verify_mode, context("verify_ca").check_hostname) == (ssl.CERT_REQUIRED, False)
    assert (context("VERIFY_IDENTITY").verify_mode, context("verify_identity").check_hostname) == (
        ssl.CERT_REQUIRED,
        True,
    )


def test_a_connection_of_sqlalchemy_by_either_name_is_to_the_server_that_is_there(
    dibs_on: Make, open_database: Callable[[str], Mysql]
) -> None:
    import sqlalchemy
    from sqlalchemy.orm import Session

    mariadb = open_database("mariadb1011")
    jobs = dibs_on(mariadb.url)
    engine = sqlalchemy.create_engine(mariadb.url.replace("mariadb:", "mysql+pymysql:"), poolclass=sqlalchemy.NullPool)
    with Session(engine) as session:
        assert jobs.enqueue("mail", connection=session).created
        session.commit()
    with engine.connect() as connection:
        assert jobs.enqueue("mail", connection=connection).created
        connection.commit()
    engine.dispose()
    assert jobs.count() == 2


@pytest.mark.parametrize("kind", ON_MYSQL)
def test_another_database_of_the_server_is_refused_also_if_it_has_the_tables(
    mysql: Mysql, dibs_on: Make, kind: Callable[[Any], Caller]
) -> None:
    jobs = dibs_on(mysql.url)
    server, _, name = mysql.url.rpartition("/")
    mysql.query(f"create database other_{name}")
    try:
        other = dibs_on(f"{server}/other_{name}")
        other.migrate()
        place: Any = SimpleNamespace(url=f"{server}/other_{name}")
        caller = kind(place)
        with pytest.raises(WrongDatabase, match=f"to other_{name}, but the jobs are in"):
            caller.enqueue(jobs, "mail")
        caller.execute(f"use {name}")
        assert caller.enqueue(jobs, "mail").created
        caller.commit()
        caller.close()
        other.close()
    finally:
        mysql.query(f"drop database other_{name}")
    assert jobs.count() == 1


def test_a_connection_that_has_chosen_no_database_is_called_the_wrong_one(mysql: Mysql, dibs_on: Make) -> None:
    jobs = dibs_on(mysql.url)
    with (
        closing(Connection(**{**arguments(mysql.url), "database": None})) as caller,
        pytest.raises(WrongDatabase, match="without dibs' tables"),
    ):
        jobs.enqueue("mail", connection=caller)


def test_a_cursor_of_any_kind_and_a_subclass_are_recognised(mysql: Mysql, dibs_on: Make) -> None:
    jobs = dibs_on(mysql.url)
    with closing(mysql.connect()) as caller:
        assert isinstance(caller, Connection)
        with caller.cursor(pymysql.cursors.SSDictCursor) as cursor:
            assert jobs.enqueue("mail", unique="a", connection=cursor).created
        caller.cursorclass = pymysql.cursors.DictCursor
        assert not jobs.enqueue("mail", unique="a", connection=caller).created
