"""Builds the four function binaries of an application for the local cloud."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import cloud
from deploy import BINARIES

# As for AWS: small, and the same bytes from the same source.
FLAGS = ["-tags", "lambda.norpc", "-trimpath", "-buildvcs=false", "-ldflags=-s -w"]


def build(app: Path, out: Path, goos: str, say: Callable[[str], None]) -> None:
    """Builds <app>/functions/<name> to <out>/<name>/bootstrap, each."""
    if shutil.which("go") is None:
        raise cloud.Failed("there is no `go` on the PATH; get it from https://go.dev/dl/")
    for name in BINARIES:
        if not (app / "functions" / name).is_dir():
            raise cloud.Failed(f"{app / 'functions' / name} is not a folder: --app wants one with "
                               f"functions/{{{','.join(BINARIES)}}}")
        say(f"building functions/{name} ...")
        started = time.monotonic()
        compile_one(app, name, out, goos)
        say(f"built functions/{name} in {time.monotonic() - started:.1f} s")


def compile_one(app: Path, name: str, out: Path, goos: str) -> None:
    # The compiler's own temporary files lie in ours, in case it is killed.
    environment = {**os.environ, "CGO_ENABLED": "0", "GOOS": goos, "GOARCH": goarch(), "GOTMPDIR": str(out)}
    binary = out / name / "bootstrap"
    command = ["go", "build", "-C", str(app), *FLAGS, "-o", str(binary), f"./functions/{name}"]
    # A group of its own, so that the compilers it starts can be ended with it.
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, start_new_session=True)
    try:
        output, _ = process.communicate()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    if process.returncode != 0:
        raise cloud.Failed(f"functions/{name} does not build:\n{output.strip()}")


def goarch() -> str:
    return {"arm64": "arm64", "x86_64": "amd64"}[cloud.architecture()]
