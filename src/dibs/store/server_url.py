"""URLs of database servers, taken apart without changing a letter: drivers read them in their own way."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

from dibs.errors import InvalidURL


class ServerUrl(NamedTuple):
    """`scheme://user:password@host:port,host:port/database?name=value`; everything but the scheme may be missing."""

    scheme: str
    user: str
    password: str
    hosts: tuple[tuple[str, int | None], ...]
    database: str
    query: str

    @property
    def options(self) -> dict[str, str]:
        """What stands after the question mark."""
        return dict(parse_qsl(self.query, keep_blank_values=True))

    def shown(self, scheme: str) -> str:
        """The URL for people: without its password, and without options, which may hold one."""
        user = f"{self.user}@" if self.user else ""
        return f"{scheme}://{user}{','.join(map(_shown, self.hosts))}/{self.database}"


def take_apart(url: str) -> ServerUrl:
    """Read a URL; what stands percent-encoded in it is decoded."""
    scheme, _, rest = url.partition("://")
    rest, _, query = rest.partition("?")
    authority, _, database = rest.partition("/")
    login, _, places = authority.rpartition("@")
    user, _, password = login.partition(":")
    hosts = tuple(_place(place) for place in places.split(",")) if places else ()
    return ServerUrl(scheme, unquote(user), unquote(password), hosts, unquote(database), query)


def _place(text: str) -> tuple[str, int | None]:
    """A host and its port; an IPv6 address stands in brackets."""
    host, colon, port = text.rpartition(":")
    if not colon or port.endswith("]"):
        return unquote(text).strip("[]"), None
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise InvalidURL(f"{port!r} in the database URL is no port.", "Write host:5432; a colon in a password is %3A.")
    return unquote(host).strip("[]"), int(port)


def _shown(place: tuple[str, int | None]) -> str:
    host, port = place
    name = f"[{host}]" if ":" in host else host
    return name if port is None else f"{name}:{port}"
