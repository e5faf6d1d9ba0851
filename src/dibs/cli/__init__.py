"""The command line: words on a terminal. Commands compose the public door; nothing imports them."""

from __future__ import annotations


def main() -> int:
    """Run the command that the arguments of this process name; answers its exit code."""
    from dibs.cli.run import run

    return run()
