"""Creates the Python environments localstack/.venv (ministack, botocore and waitress) and localstack/.venv-localstack.

    venv_python.py ministack | localstack        creates this environment if it does not exist

It uses only the standard library, because it runs before packages are installed.
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
    """A virtual environment next to this file, with the packages of a requirements file."""

    folder: Path
    requirements: Path
    what: str  # the contents, for messages
    version: str = ""  # the required version of Python, such as "3.13"; empty selects the running Python

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def ensure(self) -> None:
        """Creates the environment if it is missing or its requirements have changed."""
        with open(self.folder.with_name(self.folder.name + ".lock"), "w") as lock:
            # Tests of several packages can call this concurrently.
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
            self.folder.unlink()  # another checkout may use the target of the link
        shutil.rmtree(self.folder, ignore_errors=True)
        run([base, "-m", "venv", str(self.folder)])
        run([str(self.python), "-m", "pip", "install", "--quiet", "--no-deps", "-r", str(self.requirements)])
        # Write the stamp last. If the stamp is missing, the next run installs the packages again.
        (self.folder / "requirements.sha256").write_text(self.fingerprint())


MINISTACK = Environment(HERE / ".venv", HERE / "requirements.txt", "ministack, botocore and waitress (20 MB)")
LOCALSTACK = Environment(HERE / ".venv-localstack", HERE / "requirements-localstack.txt",
                         "LocalStack (500 MB, some minutes)", version="3.13")


def run_inside() -> None:
    """Continues if the virtual environment's Python is running. Otherwise it replaces this process with that Python."""
    if Path(sys.prefix).resolve() == MINISTACK.folder.resolve():  # it may be a link to the environment of another checkout
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
    """Returns a Python of a version that runs: $PYTHON313, the one on the PATH, or one of pyenv.

    A command python3.13 may not work: pyenv adds one to the PATH for every installed version, and the command fails if
    another version is selected.
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
    # The output of pip goes to standard error, because other programs parse the standard output.
    if subprocess.run(command, stdout=sys.stderr).returncode != 0:
        sys.exit(f"localstack: command failed: {' '.join(command)}")


if __name__ == "__main__":
    check_python()
    {"ministack": MINISTACK, "localstack": LOCALSTACK}[sys.argv[1]].ensure()
