"""Where questions are asked: one file for each family of database servers, all behind the interface in `ground.py`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bench.grounds.ground import Ground
from bench.grounds.mysql import MariadbGround, MysqlGround
from bench.grounds.postgres import PostgresGround

GROUNDS: dict[str, Callable[[], Ground]] = {
    **{f"postgres{major}": partial(PostgresGround, major) for major in (14, 15, 16, 17, 18)},
    "mysql97": MysqlGround,
    "mariadb1011": MariadbGround,
}
"""By the names of `tests/servers`."""
