"""How long transactions hold locks, as somebody sees who looks at the server now and then."""

from __future__ import annotations

import threading
import time

from chaos.plain import Plain

PAUSE = 0.15
"""InnoDB shows the same picture again to whoever has asked within a tenth of a second."""
_INNODB = """
    select concat(t.trx_id, ' ', t.trx_started), concat(t.trx_state, ' ', coalesce(p.info, p.command))
      from information_schema.innodb_trx t join {}_schema.processlist p on p.id = t.trx_mysql_thread_id
     where p.db = database() and t.trx_rows_locked > 0"""
_POSTGRES = """
    select backend_xid::text, state || ' ' || query from pg_stat_activity
     where datname = current_database() and backend_xid is not null"""
HOLDERS = {
    "mysql": _INNODB.format("performance"),  # its information_schema fails while anybody sends an emoji
    "mariadb": _INNODB.format("information"),
    "postgresql": _POSTGRES,
}
"""The transactions of this database that hold locks on rows, each with what it does; by the scheme of a URL.

InnoDB numbers only those that have written: the others of a connection are told apart by the second they began in.
"""


class Lookout(threading.Thread):
    """Looks who holds locks, until it is told to stop. What it saw twice was held at least as long as that took."""

    def __init__(self, url: str) -> None:
        super().__init__(name="lookout")
        self._url = url
        self._over = threading.Event()
        self._seen: dict[str, float] = {}
        self.looks = 0
        self.longest = 0.0
        self.what = ""

    def run(self) -> None:
        """Look now and then."""
        with Plain(self._url) as database:
            while not self._over.wait(PAUSE):
                self._look([(str(holder), str(what)) for holder, what in database.rows(HOLDERS[database.kind])])

    def stop(self) -> None:
        """Return when it has stopped."""
        self._over.set()
        self.join()

    def _look(self, holders: list[tuple[str, str]]) -> None:
        now = time.monotonic()
        self._seen = {holder: self._seen.get(holder, now) for holder, _ in holders}
        self.looks += 1
        for holder, what in holders:
            if now - self._seen[holder] > self.longest:
                self.longest, self.what = now - self._seen[holder], " ".join(what.split())[:120]
