"""The local cloud: ministack, started and stopped here, or a LocalStack that runs."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
REGION = "us-east-1"
STARTS = 3  # a free port may be taken before ministack listens on it
START_SECONDS = 30
STOP_SECONDS = 5
# Any pair will do: no local cloud checks them. They keep real ones out of it.
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": REGION,
}


class Failed(Exception):
    """What went wrong, for the user to read."""


@dataclass
class Cloud:
    """A local cloud that answers at endpoint."""

    endpoint: str
    goos: str
    parameters: dict[str, str] = field(default_factory=dict)
    log_dir: Path | None = None
    pid: int = 0

    def stop(self) -> None:
        """Ends what was started; a LocalStack was not."""


@dataclass(kw_only=True)
class Ministack(Cloud):
    """A ministack of our own, with its functions in its process group."""

    process: subprocess.Popen
    data: Path
    stopping: bool = False

    def stop(self) -> None:
        self.stopping = True
        end_group(self.process)
        shutil.rmtree(self.data, ignore_errors=True)


    def die_with(self) -> None:
        """Has this process fail when the server ends by itself: nothing that it serves is there any more."""
        def died(_number: int, _frame: object) -> None:
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
            raise Failed(f"ministack (pid {self.pid}) has ended by itself, with {self.process.returncode}; "
                         f"the end of its log:\n{tail(self.log_dir / 'ministack.log')}")

        def watch() -> None:
            self.process.wait()
            if not self.stopping:
                os.kill(os.getpid(), signal.SIGUSR1)  # the main thread waits for something else

        signal.signal(signal.SIGUSR1, died)
        threading.Thread(target=watch, daemon=True).start()


def architecture() -> str:
    """The host's, in Lambda's words."""
    return "arm64" if platform.machine().lower() in ("arm64", "aarch64") else "x86_64"


def localstack() -> Cloud:
    """The LocalStack that compose.yaml starts. It has no HTTP APIs, and its schedules do not fire."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")
    if not answers(endpoint):
        raise Failed(f"no LocalStack answers at {endpoint}; start it with: "
                     f"docker compose -f {HERE / 'compose.yaml'} up -d")
    return Cloud(endpoint, "linux", {"ApiKind": "function-url", "Timers": "hops"})


def ministack(log_dir: Path | None, enforce_iam: bool) -> Ministack:
    """Starts one on a free port. It dies with this process, however that ends.

    With enforce_iam each function may do what its role allows and nothing else;
    the credentials of this module are root's.
    """
    data = Path(tempfile.mkdtemp(prefix="perdure-local-"))
    logs = log_dir or data / "logs"
    try:
        logs.mkdir(parents=True, exist_ok=True)
        for _ in range(STARTS):
            cloud = start(data, logs, enforce_iam)
            if cloud is not None:
                return cloud
        log = logs / "ministack.log"
        raise Failed(f"ministack does not start; the end of {log}:\n{tail(log)}")
    except BaseException:
        shutil.rmtree(data, ignore_errors=True)
        raise


def start(data: Path, logs: Path, enforce_iam: bool) -> Ministack | None:
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    with open(logs / "ministack.log", "ab") as log:
        process = subprocess.Popen(
            [sys.executable, str(HERE / "ministack_server.py"), str(logs), str(data)],
            env=server_environment(data, port, enforce_iam), cwd=data,
            stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True)
    try:
        if becomes_ready(process, endpoint):
            return Ministack(endpoint, sys.platform, log_dir=logs, pid=process.pid, process=process, data=data)
    except BaseException:
        end_group(process)
        raise
    end_group(process)
    return None


def server_environment(data: Path, port: int, enforce_iam: bool) -> dict[str, str]:
    """Clean, because the functions inherit it."""
    temporary = data / "tmp"
    temporary.mkdir(exist_ok=True)
    return {
        **CREDENTIALS,
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(data),
        "TMPDIR": str(temporary),
        "STATE_DIR": str(data / "state"),
        "S3_DATA_DIR": str(data / "s3"),
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",  # else the functions would call the real AWS
        "DOCKER_HOST": f"unix://{data}/none",  # ministack sweeps Docker for its own containers
        "AUTH": "true" if enforce_iam else "false",
        "LOG_LEVEL": "INFO",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def becomes_ready(process: subprocess.Popen, endpoint: str) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if answers(endpoint):
            return True
        time.sleep(0.05)
    return False


def answers(endpoint: str) -> bool:
    try:
        with urllib.request.urlopen(endpoint + "/_localstack/health", timeout=2):
            return True
    except (urllib.error.URLError, OSError):
        return False


def end_group(process: subprocess.Popen) -> None:
    """Ends a server and the functions it started; there is nothing to save."""
    if process.stdin is not None:
        process.stdin.close()  # it ends by itself then
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=STOP_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def tail(path: Path, lines: int = 20) -> str:
    text = path.read_text(errors="replace") if path.exists() else ""
    return "\n".join(text.splitlines()[-lines:])
