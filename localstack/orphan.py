"""Ends an emulator with the process that started it."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

ORPHAN_SECONDS = 10


def end_with_parent(data: Path, last: Callable[[], None] = lambda: None) -> None:
    """Ends this process and deletes its data when the parent process stops it or dies, even by SIGKILL. It returns
    immediately.

    Standard input is a pipe whose other end only the parent holds. All child processes are in the process group of this
    process.
    """
    threading.Thread(target=wait_and_end, args=(data, last), daemon=True).start()


def wait_and_end(data: Path, last: Callable[[], None]) -> None:
    parent = os.getppid()
    sys.stdin.buffer.read()
    last()
    shutil.rmtree(data, ignore_errors=True)
    deadline = time.monotonic() + ORPHAN_SECONDS
    while os.getppid() != parent and time.monotonic() < deadline:
        time.sleep(0.1)  # the parent could not end its compiler, which creates the directory again
        shutil.rmtree(data, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)
