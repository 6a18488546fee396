"""Builds the four function binaries of an application for the local cloud."""

from __future__ import annotations

import contextlib
import filecmp
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import cloud
from deploy import BINARIES

# Small binaries, and the same bytes from the same source, as on AWS.
# PERDURE_BUILD_TAGS is for functions that need code which perdure_lambda excludes (dynamo.Open, other credential sources).
FLAGS = ["-tags", os.environ.get("PERDURE_BUILD_TAGS", "lambda.norpc,perdure_lambda"), "-trimpath", "-buildvcs=false", "-ldflags=-s -w"]
PACKAGES = [f"./functions/{name}" for name in BINARIES]
SAY_SECONDS = 3
Say = Callable[[str], None]


def build(app: Path, out: Path, goos: str, say: Say) -> None:
    """Builds <app>/functions/<name> to <out>/<name>/bootstrap for each function. It does not write unchanged binaries.
    """
    if shutil.which("go") is None:
        raise cloud.Failed("go was not found on the PATH; install it from https://go.dev/dl/")
    for name in BINARIES:
        if not (app / "functions" / name).is_dir():
            raise cloud.Failed(f"{app / 'functions' / name} is not a directory; --app requires a directory with "
                               f"functions/{{{','.join(BINARIES)}}}")
    say(f"building functions/{{{','.join(BINARIES)}}} ...")
    started = time.monotonic()
    built = out / "built"
    built.mkdir(exist_ok=True)
    compile_all(app, built, environment(out, goos), say)
    changed = [name for name in BINARIES if replaced(built / name, out / name / "bootstrap")]
    say(f"built in {time.monotonic() - started:.1f} s; changed: {', '.join(changed) or 'none'}")


def replaced(new: Path, old: Path) -> bool:
    """Copies a binary to its destination unless the same binary is there, and returns whether it copied the binary. It
    does not move the built binary, because go build skips unchanged binaries."""
    old.parent.mkdir(exist_ok=True)
    if old.exists() and filecmp.cmp(new, old, shallow=False):
        return False
    shutil.copy(new, old)
    return True


def environment(out: Path, goos: str) -> dict[str, str]:
    # The compiler's temporary files are in our directory, which is deleted even if the compiler is killed.
    return {**os.environ, "CGO_ENABLED": "0", "GOOS": goos, "GOARCH": goarch(), "GOTMPDIR": str(out)}


def compile_all(app: Path, built: Path, env: dict[str, str], say: Say) -> None:
    """Runs one go build for all functions and reports the progress: the first build compiles about a hundred packages.
    """
    command = ["go", "build", "-C", str(app), "-v", *FLAGS, "-o", f"{built}/", *PACKAGES]
    # Use a separate process group, so that the compilers can be killed together with go build.
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               start_new_session=True)
    lines: list[str] = []
    said = time.monotonic()
    try:
        for line in process.stdout or ():
            lines.append(line.rstrip())
            if time.monotonic() - said > SAY_SECONDS:
                said = time.monotonic()
                say(f"{len(lines)} packages compiled, {lines[-1]} ...")
        process.wait()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):  # the process may have just ended
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    if process.returncode != 0:
        raise cloud.Failed("go build failed:\n" + "\n".join(complaints(lines)))


def complaints(lines: list[str]) -> list[str]:
    """Returns the errors in the output of go build: the part from the first "# package" on, or all of it. -v prints
    package names before the errors."""
    first = next((i for i, line in enumerate(lines) if line.startswith("# ")), None)
    return lines[first:] if first is not None else [line for line in lines if " " in line] or lines


@dataclass(frozen=True)
class Sources:
    """The source files of the functions that a developer can edit."""

    folders: list[Path]
    files: list[Path]  # embedded files


def sources(app: Path) -> Sources:
    """Returns the sources without the standard library and downloaded modules."""
    command = ["go", "list", "-C", str(app), "-deps", "-json=Dir,Standard,Module,EmbedFiles", *PACKAGES]
    listed = subprocess.run(command, capture_output=True, text=True)
    if listed.returncode != 0:
        raise cloud.Failed(f"go list: {listed.stderr.strip()}")
    decoder, text = json.JSONDecoder(), listed.stdout.strip()
    folders, files = set(), set()
    while text:
        package, end = decoder.raw_decode(text)
        text = text[end:].lstrip()
        module = package.get("Module", {})
        if package.get("Standard") or "Version" in (module.get("Replace") or module):
            continue
        folder = Path(package["Dir"])
        folders.update((folder, Path(module.get("Dir", folder))))
        files.update(folder / name for name in package.get("EmbedFiles", []))
    return Sources(sorted(folders), sorted(files))


def goarch() -> str:
    return {"arm64": "arm64", "x86_64": "amd64"}[cloud.architecture()]
