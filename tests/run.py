"""The test command: `python3 tests/run.py [--fast] [-- pytest arguments]`.

From a bare Debian with Python 3.11 to an answer: makes `.venv` with what `requirements/test.txt` pins,
installs dibs into it, runs every stage below, one result line each, and exits with 1 if any of them failed.
Servers are started once for the whole run (`tests/servers`) and are gone when it ends, however it ends.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.servers import FACTORIES, fleet, must_be_there  # noqa: E402
from tests.servers.cache import locked  # noqa: E402
from tests.servers.commands import ask  # noqa: E402
from tests.servers.debian import PackagesMissing, install  # noqa: E402
from tests.servers.unavailable import ServerUnavailable  # noqa: E402

VENV = ROOT / ".venv"
PYTHON = VENV / "bin/python"
PINS = ROOT / "requirements/test.txt"
OLDEST_PYTHON = (3, 11)
DEFAULT_SERVERS = ("postgres18", "postgres15", "mysql97", "mariadb1011")
PATIENCE_SECONDS = 30.0


@dataclass(frozen=True)
class Stage:
    """One question to the code: a module that `.venv`'s Python runs, with its arguments."""

    name: str
    group: str
    arguments: tuple[str, ...]
    needs_servers: bool = False


HARNESS = ("tests/servers", "tests/run.py", "chaos")
STAGES = (
    Stage("ruff check", "lint", ("ruff", "check")),
    Stage("ruff format", "lint", ("ruff", "format", "--check")),
    Stage("mypy", "types", ("mypy",)),
    Stage("mypy of the harness", "types", ("mypy", "--explicit-package-bases", *HARNESS)),
    Stage("pyright", "types", ("pyright",)),
    Stage("pytest", "tests", ("pytest", "-n", "2"), needs_servers=True),
)
GROUPS = tuple(dict.fromkeys(stage.group for stage in STAGES))


@dataclass(frozen=True)
class Result:
    """What became of a stage."""

    name: str
    failed: bool
    seconds: float
    remark: str = ""

    def __str__(self) -> str:
        verdict = "FAILED" if self.failed else "ok"
        return f"{verdict:<6} {self.name:<20} {self.seconds:6.1f} s  {self.remark}".rstrip()


class SetupFailed(Exception):
    """The stages can't be run; the message says what to do."""


def main() -> int:
    """Prepare, run the chosen stages, tell."""
    chosen = _arguments()
    results = [setup()]
    if not results[0].failed and not chosen.setup:
        results += run_stages(chosen)
    failed = [result.name for result in results if result.failed]
    say("\n" + "\n".join(map(str, results)))
    say(f"FAILED: {', '.join(failed)}" if failed else "all of it holds")
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(usage="python3 tests/run.py [options] [-- pytest arguments]")
    parser.add_argument("--fast", action="store_true", help="SQLite only, no servers")
    parser.add_argument("--setup", action="store_true", help="only prepare .venv")
    parser.add_argument("--only", choices=GROUPS, help="run the stages of this group only")
    parser.add_argument("--servers", default=",".join(DEFAULT_SERVERS), help=f"of {', '.join(FACTORIES)}")
    parser.add_argument("pytest", nargs="*", help="passed on to pytest")
    return parser.parse_args()


def say(text: object) -> None:
    """Print at once, so that our lines and those of the stages keep their order in a pipe."""
    print(text, flush=True)


# -- setup: a virtual environment that holds exactly what is pinned, and dibs


def setup() -> Result:
    """Prepare .venv, quickly when nothing has changed since."""
    started, remark = time.monotonic(), ""
    try:
        with locked(f"venv-{hashlib.sha256(bytes(ROOT)).hexdigest()[:8]}"):
            make_venv()
            _once("pins", (PINS,), install_pins)
            _once("project", (PINS, ROOT / "pyproject.toml"), install_project)
    except (SetupFailed, PackagesMissing, ServerUnavailable) as failure:
        remark = str(failure)
    result = Result("setup", bool(remark), time.monotonic() - started, remark)
    say(result)
    return result


def make_venv() -> None:
    """Create .venv, or create it anew when its interpreter is gone."""
    if sys.version_info < OLDEST_PYTHON:
        raise SetupFailed(f"Python {sys.version.split()[0]} is too old: run this with Python 3.11 or newer.")
    if PYTHON.exists() and ask([str(PYTHON), "-c", "import pip"]).returncode == 0:
        return
    if importlib.util.find_spec("ensurepip") is None:  # Debian keeps it in a package of its own
        install([f"python{sys.version_info.major}.{sys.version_info.minor}-venv"])
    _quietly([sys.executable, "-m", "venv", "--clear", str(VENV)])


def install_pins() -> None:
    """The pinned versions, as wheels: nothing is compiled, nothing unchecked is run."""
    _pip_install("--only-binary=:all:", "--require-hashes", "-r", str(PINS))


def install_project() -> None:
    """dibs itself, editable. What it asks for must be there already, by the pins: nothing is fetched."""
    _pip_install("--no-build-isolation", "--no-index", "--editable", str(ROOT))


def _once(name: str, sources: Sequence[Path], action: Callable[[], None]) -> None:
    """Act unless it was done in this .venv with these very files."""
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    stamp = VENV / f".dibs-{name}"
    if not stamp.exists() or stamp.read_text() != digest:
        say(f"setup: installing {name}")
        action()
        stamp.write_text(digest)


def _pip_install(*arguments: str) -> None:
    _quietly([str(PYTHON), "-m", "pip", "install", "-qq", "--disable-pip-version-check", *arguments])


def _quietly(command: Sequence[str]) -> None:
    answer = ask(command)
    if answer.returncode != 0:
        raise SetupFailed(f"`{' '.join(command)}` failed:\n{answer.stdout[-3000:]}")


# -- stages


def run_stages(chosen: argparse.Namespace) -> list[Result]:
    """Every chosen stage, also after one has failed; the servers run only while they are needed."""
    stages = [stage for stage in STAGES if chosen.only in (None, stage.group)]
    results = [run_stage(stage, stage.arguments, {}) for stage in stages if not stage.needs_servers]
    served = [stage for stage in stages if stage.needs_servers]
    if served:
        with shared_servers(_server_names(chosen)) as (environment, result):
            results.append(result)
            results += [run_stage(stage, (*stage.arguments, *chosen.pytest), environment) for stage in served]
    return results


def _server_names(chosen: argparse.Namespace) -> list[str]:
    given = os.environ.get("DIBS_TEST_SERVERS")
    if chosen.fast:
        return []
    return list(json.loads(given)) if given is not None else chosen.servers.split(",")


@contextmanager
def shared_servers(names: Sequence[str]) -> Iterator[tuple[dict[str, str], Result]]:
    """Servers for the tests, as the environment that tells of them.

    One that is missing fails the run in CI, unless DIBS_ALLOW_MISSING names it; elsewhere the run goes on
    without it, and says so.
    """
    started = time.monotonic()
    with fleet(names) as servers:
        for missing in servers.missing:
            say(f"\n!!! NOT TESTED with {missing}\n")
        without = [missing.name for missing in servers.missing]
        remark = " ".join(servers.urls) + (f" WITHOUT {' '.join(without)}" if without else "")
        failed = any(must_be_there(name) for name in without)
        result = Result("servers", failed, time.monotonic() - started, remark or "none")
        say(f"\n{result}")
        yield {"DIBS_TEST_SERVERS": json.dumps(servers.urls)}, result


def run_stage(stage: Stage, arguments: Sequence[str], environment: dict[str, str]) -> Result:
    """Run one stage to its end; its output is shown as it comes."""
    say(f"\n--- {' '.join(arguments)}")
    started = time.monotonic()
    process = subprocess.Popen(
        [PYTHON, "-m", *arguments], cwd=ROOT, stdin=subprocess.DEVNULL, env=_environment(environment)
    )
    try:
        code = process.wait()
    except KeyboardInterrupt:  # the stage got it as well: let it clean up while its servers are still there
        _wait_or_kill(process)
        raise
    result = Result(stage.name, code != 0, time.monotonic() - started, f"exit code {code}" if code else "")
    say(result)
    return result


def _environment(additions: dict[str, str]) -> dict[str, str]:
    """As in an activated .venv; pyright is told not to ask the network for a newer version of itself."""
    path = f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    settings = {"PATH": path, "VIRTUAL_ENV": str(VENV), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    return {**os.environ, **settings, **additions}


def _wait_or_kill(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        say("interrupted")
        sys.exit(130)
