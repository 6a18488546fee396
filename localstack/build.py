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

# As for AWS: small, and the same bytes from the same source.
# PERDURE_BUILD_TAGS is for functions that need what perdure_lambda leaves out (dynamo.Open, credentials of other sources).
FLAGS = ["-tags", os.environ.get("PERDURE_BUILD_TAGS", "lambda.norpc,perdure_lambda"), "-trimpath", "-buildvcs=false", "-ldflags=-s -w"]
PACKAGES = [f"./functions/{name}" for name in BINARIES]
SAY_SECONDS = 3
Say = Callable[[str], None]


def build(app: Path, out: Path, goos: str, say: Say) -> None:
    """Builds <app>/functions/<name> to <out>/<name>/bootstrap, each. Those that have not changed stay as they are."""
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
    """Copies a binary to its place, unless it is there. go build skips what it finds as it has built it, so that stays."""
    old.parent.mkdir(exist_ok=True)
    if old.exists() and filecmp.cmp(new, old, shallow=False):
        return False
    shutil.copy(new, old)
    return True


def environment(out: Path, goos: str) -> dict[str, str]:
    # The compiler's own temporary files lie in ours, in case it is killed.
    return {**os.environ, "CGO_ENABLED": "0", "GOOS": goos, "GOARCH": goarch(), "GOTMPDIR": str(out)}


def compile_all(app: Path, built: Path, env: dict[str, str], say: Say) -> None:
    """Runs one go build for all, and says how far it is: the first one compiles some hundred packages."""
    command = ["go", "build", "-C", str(app), "-v", *FLAGS, "-o", f"{built}/", *PACKAGES]
    # A group of its own, so that the compilers it starts can be ended with it.
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
        with contextlib.suppress(ProcessLookupError):  # it may have ended just now
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    if process.returncode != 0:
        raise cloud.Failed("go build failed:\n" + "\n".join(complaints(lines)))


def complaints(lines: list[str]) -> list[str]:
    """What go build says of errors: from the first "# package" on, or everything; -v has the names of packages before."""
    first = next((i for i, line in enumerate(lines) if line.startswith("# ")), None)
    return lines[first:] if first is not None else [line for line in lines if " " in line] or lines


@dataclass(frozen=True)
class Sources:
    """What a developer edits, of all that the functions are built from."""

    folders: list[Path]
    files: list[Path]  # that are embedded


def sources(app: Path) -> Sources:
    """Leaves out the standard library and modules that were downloaded."""
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
