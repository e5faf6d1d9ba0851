"""From the arguments of a process to its exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

import click

from dibs.cli.problems import INTERRUPTED, OK, tell, tell_unexpected, tell_usage
from dibs.cli.target import Target
from dibs.cli.tree import root
from dibs.errors import DibsError
from dibs.messages import asked_for, say, speak


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; every way it can end has one exit code, and none shows a traceback without --debug."""
    speak(asked_for(os.environ, _configured_language()))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that cannot show a letter is no reason to fail
    target = Target(debug=bool(os.environ.get("DIBS_DEBUG")))
    # What nobody foresaw is told in one sentence as well, and Python then ends with exit code 1.
    sys.excepthook = lambda _kind, error, _trace: tell_unexpected(error, target.debug)
    try:
        code = root.main(arguments, prog_name="dibs", obj=target, standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else OK
    except click.UsageError as error:
        return _show_help(error) if type(error).__name__ == "NoArgsIsHelpError" else tell_usage(error)
    except (click.Abort, KeyboardInterrupt):
        sys.stderr.write(say("interrupted") + "\n")
        return INTERRUPTED
    except DibsError as error:
        return tell(error, target.debug)
    except BrokenPipeError:
        # Whoever read our output has seen enough (`dibs job list | head`): nothing more can be said on that pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK


def _show_help(error: click.UsageError) -> int:
    """A group without a command shows its help; that is a usage error. (Before Click 8.2 there was no such class.)"""
    sys.stderr.write(error.format_message() + "\n")
    return error.exit_code


def _configured_language() -> str | None:
    """`lang` of dibs' table in pyproject.toml or dibs.toml. A file that cannot be read is told of by who needs it."""
    if os.environ.get("DIBS_LANG") or not any(map(os.path.exists, ("dibs.toml", "pyproject.toml"))):
        return None
    from dibs.door import settings

    try:
        found = settings.find("lang").value
    except DibsError:
        return None
    return str(found) if found else None
