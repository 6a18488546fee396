"""Makes the Python environments: localstack/.venv, with ministack, botocore and waitress, and localstack/.venv-localstack.

    venv_python.py ministack | localstack        makes that one, if it is not there yet

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
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
OLDEST = (3, 10)


@dataclass(frozen=True)
class Environment:
    """A virtual environment beside this file, with what a requirements file pins."""

    folder: Path
    requirements: Path
    what: str  # is in it, for people
    version: str = ""  # of the Python that it takes, as in "3.13"; empty is that which runs this

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def ensure(self) -> None:
        """Makes the environment if it is missing or its requirements have changed."""
        with open(self.folder.with_name(self.folder.name + ".lock"), "w") as lock:
            # Tests of several packages may all be the first to come.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self.is_current():
                self.install(find(self.version) if self.version else sys.executable)

    def is_current(self) -> bool:
        stamp = self.folder / "requirements.sha256"
        return self.python.exists() and stamp.exists() and stamp.read_text() == self.fingerprint()

    def fingerprint(self) -> str:
        version = self.version or sys.version
        return hashlib.sha256(self.requirements.read_bytes() + version.encode()).hexdigest()

    def install(self, base: str) -> None:
        print(f"localstack: installing {self.what} into {self.folder} ...", file=sys.stderr, flush=True)
        if self.folder.is_symlink():
            self.folder.unlink()  # what it leads to is another's, who may need it as it is
        shutil.rmtree(self.folder, ignore_errors=True)
        run([base, "-m", "venv", str(self.folder)])
        run([str(self.python), "-m", "pip", "install", "--quiet", "--no-deps", "-r", str(self.requirements)])
        # Last: without it the next run begins anew.
        (self.folder / "requirements.sha256").write_text(self.fingerprint())


MINISTACK = Environment(HERE / ".venv", HERE / "requirements.txt", "ministack, botocore and waitress (20 MB)")
LOCALSTACK = Environment(HERE / ".venv-localstack", HERE / "requirements-localstack.txt",
                         "LocalStack (500 MB, some minutes)", version="3.13")


def run_inside() -> None:
    """Returns in the virtual environment's Python; outside it, becomes that."""
    if Path(sys.prefix).resolve() == MINISTACK.folder.resolve():  # it may be a link, to that of another checkout
        return
    check_python()
    MINISTACK.ensure()
    os.execv(MINISTACK.python, [str(MINISTACK.python), *sys.argv])


def check_python() -> None:
    wanted = ".".join(str(n) for n in OLDEST)
    if sys.version_info < OLDEST:
        sys.exit(f"localstack: Python {wanted} or later is required, but this is {sys.version.split()[0]} "
                 f"({sys.executable}). Get it from https://www.python.org/downloads/")
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        sys.exit(f"localstack: {sys.executable} has no venv module. On Debian and Ubuntu: "
                 "apt-get install python3-venv; elsewhere install Python from https://www.python.org/downloads/")


def find(version: str) -> str:
    """Returns a Python of a version that runs: $PYTHON313, the one on the PATH, or pyenv's.

    A command python3.13 need not run: pyenv has one on the PATH for every version that it has, and it fails where
    another version is chosen.
    """
    name = f"python{version}"
    variable = name.upper().replace(".", "")
    tried = [os.environ[variable]] if os.environ.get(variable) else [name, pyenv(version)]
    for candidate in tried:
        if candidate and runs(candidate, version):
            return candidate
    sys.exit(f"localstack: LocalStack requires Python {version}, but no {' or '.join(filter(None, tried))} of that version "
             f"runs here. Install it from https://www.python.org/downloads/, or set {variable}=/path/to/{name}")


def runs(python: str, version: str) -> bool:
    check = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    try:
        found = subprocess.run([python, "-c", check], capture_output=True, text=True)
    except OSError:
        return False
    return found.returncode == 0 and found.stdout.strip() == version


def pyenv(version: str) -> str:
    try:
        found = subprocess.run(["pyenv", "prefix", version], capture_output=True, text=True)
    except OSError:
        return ""
    return f"{found.stdout.strip()}/bin/python{version}" if found.returncode == 0 else ""


def run(command: list[str]) -> None:
    # pip's words belong to the progress, not to the output that others parse.
    if subprocess.run(command, stdout=sys.stderr).returncode != 0:
        sys.exit(f"localstack: command failed: {' '.join(command)}")


if __name__ == "__main__":
    check_python()
    {"ministack": MINISTACK, "localstack": LOCALSTACK}[sys.argv[1]].ensure()
