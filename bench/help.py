"""How long does the command line take to say anything?"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.core.result import Figure, Result, figure
from bench.core.stage import Stage

TIMES = 10


def help(stage: Stage) -> Result:
    """`dibs --help`, beside a Python that does nothing."""
    dibs = str(Path(sys.executable).parent / "dibs")
    taken, bare = [], []
    for _ in range(TIMES):
        bare.append(_milliseconds([sys.executable, "-c", "pass"], stage))
        taken.append(_milliseconds([dibs, "--help"], stage))
    figures = [
        figure("median", taken, "ms", stage.bar("help", "none")),
        Figure("best", min(taken), "ms", bar=stage.bar("help", "none")),
        figure("python -c pass", bare, "ms"),
    ]
    return Result("help", "`dibs --help`", figures, rounds=[{"ms": round(took, 1)} for took in taken])


def _milliseconds(command: Sequence[str], stage: Stage) -> float:
    began = time.perf_counter()
    subprocess.run(command, cwd=stage.folder, stdout=subprocess.DEVNULL, check=True, timeout=30)
    return (time.perf_counter() - began) * 1000
