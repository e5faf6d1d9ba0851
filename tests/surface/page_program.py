"""Runs the code of a page as a reader would type it: `python -m tests.surface.page_program < steps.json`, in a folder.

Each step is one block. Python blocks share one namespace and may `await`; one that begins with `# name.py` is saved
under that name; one that begins with `>>>` is compared with the answers it shows. In a console block each line after
`$ ` is run by the shell and its output compared with the lines below it, if there are any; `...` stands for anything.
A command that ends in `&` runs until the end of the page.
"""

from __future__ import annotations

import ast
import asyncio
import doctest
import inspect
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

_FILE = re.compile(r"^# ([\w/]+\.(?:py|toml))\n")
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_PATIENCE = 60


class Program:
    """The blocks of one section, run in order."""

    def __init__(self) -> None:
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._background: list[subprocess.Popen[bytes]] = []
        self._runner = asyncio.Runner()

    def run(self, language: str, text: str, where: str) -> None:
        """Run one block."""
        saved = _FILE.match(text)
        if saved:
            Path(saved[1]).write_text(text + "\n", encoding="utf-8")
        elif language == "console":
            self._console(text, where)
        elif text.startswith(">>>"):
            self._dialogue(text, where)
        else:
            self._statements(text, where)

    def end(self) -> None:
        """Stop what runs in the background; it must end well."""
        self._runner.close()
        for process in self._background:
            process.send_signal(signal.SIGTERM)
            assert process.wait(_PATIENCE) in (0, 130), f"{process.args!r} ended with {process.returncode}"

    def _statements(self, text: str, where: str) -> None:
        code = compile(text, where, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        if code.co_flags & inspect.CO_COROUTINE:
            self._runner.run(_awaited(code, self._names))
        else:
            exec(code, self._names)

    def _dialogue(self, text: str, where: str) -> None:
        test = doctest.DocTestParser().get_doctest(text + "\n", self._names, where, where, 0)
        runner = doctest.DocTestRunner(optionflags=_FLAGS)
        failed, _ = runner.run(test, clear_globs=False)
        self._names.update(test.globs)
        assert not failed, f"{where}: the answers differ"

    def _console(self, text: str, where: str) -> None:
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, expected = part.replace("\\\n", "").partition("\n")
            if command.rstrip().endswith("&"):
                self._background.append(subprocess.Popen(f"exec {command.rstrip()[:-1]}", shell=True))
                continue
            done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=_PATIENCE)
            shown = done.stdout + done.stderr
            known = expected.strip()
            assert known or done.returncode == 0, f"{where}: `{command}` ended with {done.returncode}:\n{shown}"
            assert not known or _like(known, shown), f"{where}: `{command}` printed\n{shown}\ninstead of\n{expected}"


async def _awaited(code: Any, names: dict[str, Any]) -> None:
    await eval(code, names)


def _like(expected: str, shown: str) -> bool:
    return doctest.OutputChecker().check_output(expected + "\n", shown.strip() + "\n", _FLAGS)


def main() -> None:
    """Run what standard input says."""
    sys.path.insert(0, "")
    program = Program()
    try:
        for language, text, where in json.load(sys.stdin):
            program.run(language, text, where)
    finally:
        program.end()


if __name__ == "__main__":
    main()
