"""The reference on MySQL and MariaDB over mysqlclient, the driver written in C, for who has it installed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from bench.reference.loop import Connection
from bench.reference.mysql import MysqlReference


class MysqlclientReference(MysqlReference):
    """MySQLdb, as the module is called."""

    driver = "mysqlclient"

    @classmethod
    def installed(cls) -> bool:
        """It is none of the packages that tests and benches need: there is no wheel of it."""
        return find_spec("MySQLdb") is not None

    @staticmethod
    def _open(arguments: dict[str, Any]) -> Connection:
        return import_module("MySQLdb").connect(**arguments)
