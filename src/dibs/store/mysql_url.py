"""URLs of MySQL and MariaDB: how PyMySQL is to connect."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import Any

from dibs.errors import InvalidURL
from dibs.store.server_url import ServerUrl

_SECONDS = {"connect_timeout": 10.0, "read_timeout": 60.0, "write_timeout": 60.0}
"""Longer than any statement of dibs takes, and than a lock is waited for: after so long a silence a server is dead."""
_MODES = ("disabled", "preferred", "required", "verify_ca", "verify_identity")
_FILES = ("ssl_ca", "ssl_cert", "ssl_key")
_OPTIONS = frozenset({"unix_socket", "charset", "ssl_mode", *_FILES, *_SECONDS})


def arguments(parts: ServerUrl) -> dict[str, Any]:
    """What PyMySQL is told, but for the host. Nothing is connected or read yet, but for certificates."""
    options = parts.options
    unknown = sorted(options.keys() - _OPTIONS)
    if unknown:
        known = ", ".join(sorted(_OPTIONS))
        raise InvalidURL(f"{unknown[0]!r} is no option of a MySQL or MariaDB URL.", f"There are: {known}.")
    if not parts.database:
        raise InvalidURL(
            f"The URL names no database on {parts.shown(parts.scheme)}",
            "Write mysql://user:password@host:3306/database.",
        )
    if options.get("charset", "utf8mb4") != "utf8mb4":
        raise InvalidURL(
            f"charset={options['charset']!r} cannot hold every text.", "Write charset=utf8mb4, or nothing."
        )
    return {
        "user": parts.user or None,
        "password": parts.password.encode(),  # PyMySQL would write text as latin-1
        "database": parts.database,
        "charset": "utf8mb4",
        "autocommit": True,
        "program_name": "dibs",
        **{name: _seconds(name, options.get(name), default) for name, default in _SECONDS.items()},
        **_tls(options),
    }


def places(parts: ServerUrl) -> Iterator[dict[str, Any]]:
    """Where servers may be, to be tried in this order."""
    socket = parts.options.get("unix_socket")
    if socket:
        yield {"unix_socket": socket}
        return
    for host, port in parts.hosts or (("127.0.0.1", None),):
        yield {"host": host or "127.0.0.1", "port": port or 3306}


def _seconds(name: str, text: str | None, default: float) -> float:
    try:
        seconds = default if text is None else float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86_400:
        raise InvalidURL(f"{name}={text!r} is no number of seconds.", f"Write for example ?{name}=30.")
    return seconds


def _tls(options: dict[str, str]) -> dict[str, Any]:
    """As MySQL's own programs read these: encrypted if the server can, and checked only if somebody says how."""
    files = {name: options[name] for name in _FILES if options.get(name)}
    default = "verify_ca" if "ssl_ca" in files else "required" if files else "preferred"
    mode = options.get("ssl_mode", default).lower()
    if mode not in _MODES:
        raise InvalidURL(f"ssl_mode={options['ssl_mode']!r} is unknown.", f"Choose from: {', '.join(_MODES)}.")
    if mode == "disabled" or (mode == "preferred" and "unix_socket" in options):
        return {"ssl_disabled": True}
    if mode == "preferred":
        return {}
    return {"ssl": _context(mode, files)}


def _context(mode: str, files: dict[str, str]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=files.get("ssl_ca"))
        if "ssl_cert" in files:
            context.load_cert_chain(files["ssl_cert"], files.get("ssl_key"))
    except (OSError, ssl.SSLError) as error:
        raise InvalidURL(
            f"A certificate of the URL cannot be read: {error}.", "Check ssl_ca, ssl_cert, ssl_key."
        ) from error
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # the certificates that MySQL makes for itself lack an extension
    context.check_hostname = mode == "verify_identity"
    if mode == "required":
        context.verify_mode = ssl.CERT_NONE
    return context
