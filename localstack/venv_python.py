"""Makes localstack/.venv, the Python with ministack and botocore in it.

Nothing but the standard library, because this runs before anything is installed.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
VENV = HERE / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "requirements.sha256"
REQUIREMENTS = HERE / "requirements.txt"
OLDEST = (3, 10)


def run_inside() -> None:
    """Returns in the virtual environment's Python; outside it, becomes that."""
    if Path(sys.prefix).resolve() == VENV:
        return
    ensure()
    os.execv(PYTHON, [str(PYTHON), *sys.argv])


def ensure() -> None:
    """Makes the environment if it is missing or its requirements have changed."""
    check_python()
    with open(HERE / ".venv.lock", "w") as lock:
        # Tests of several packages may all be the first to come.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_current():
            install()


def check_python() -> None:
    wanted = ".".join(str(n) for n in OLDEST)
    if sys.version_info < OLDEST:
        sys.exit(f"localstack: Python {wanted} or later is needed, this is {sys.version.split()[0]} "
                 f"({sys.executable}). Get it from https://www.python.org/downloads/")
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        sys.exit(f"localstack: {sys.executable} has no venv module. On Debian and Ubuntu: "
                 "apt-get install python3-venv; elsewhere install Python from https://www.python.org/downloads/")


def is_current() -> bool:
    return PYTHON.exists() and STAMP.exists() and STAMP.read_text() == fingerprint()


def fingerprint() -> str:
    return hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()


def install() -> None:
    print(f"localstack: installing ministack and botocore into {VENV} ...", file=sys.stderr, flush=True)
    shutil.rmtree(VENV, ignore_errors=True)
    run([sys.executable, "-m", "venv", str(VENV)])
    run([str(PYTHON), "-m", "pip", "install", "--quiet", "--no-deps", "-r", str(REQUIREMENTS)])
    STAMP.write_text(fingerprint())  # last: without it the next run begins anew


def run(command: list[str]) -> None:
    # pip's words belong to the progress, not to the output that others parse.
    if subprocess.run(command, stdout=sys.stderr).returncode != 0:
        sys.exit(f"localstack: this failed: {' '.join(command)}")
