"""Starts and stops the local cloud: ministack or LocalStack, or a LocalStack that is already running."""

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
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import interrupt
import venv_python

HERE = Path(__file__).resolve().parent
REGION = "us-east-1"
JARS = HERE.parent / "tests" / "dynamodblocal" / "target" / "jars"
STARTS = 3  # a process may take a free port before the emulator listens on it
START_SECONDS = 90
STOP_SECONDS = 5
# Local clouds accept any credentials. These values keep real credentials out of the emulator.
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": REGION,
}
# The free releases of LocalStack have no HTTP APIs, and their schedules do not fire.
LOCALSTACK_PARAMETERS = {"ApiKind": "function-url", "Timers": "hops"}


class Failed(Exception):
    """An error with a message for the user."""


class Died(interrupt.Interrupt):
    """The server ended unexpectedly."""


@dataclass
class Cloud:
    """A local cloud at an endpoint."""

    endpoint: str
    goos: str
    parameters: dict[str, str] = field(default_factory=dict)
    log_dir: Path | None = None
    pid: int = 0

    def stop(self) -> None:
        """Ends the server that this process started. It does not end a LocalStack that was already running."""


@dataclass(kw_only=True)
class Emulator(Cloud):
    """An emulator that this process started. Its functions are in its process group."""

    name: str
    process: subprocess.Popen
    data: Path
    stopping: bool = False

    def stop(self) -> None:
        self.stopping = True
        end_group(self.process)
        shutil.rmtree(self.data, ignore_errors=True)

    def die_with(self) -> None:
        """Makes this process fail when the server ends unexpectedly."""
        def died() -> Died:
            return Died(f"{self.name} (pid {self.pid}) ended unexpectedly with exit code {self.process.returncode}; "
                        f"last lines of its log:\n{tail(self.log_dir / f'{self.name}.log')}")

        def watch() -> None:
            self.process.wait()
            if not self.stopping:
                os.kill(os.getpid(), signal.SIGUSR1)  # interrupts the main thread

        interrupt.on([signal.SIGUSR1], died)
        threading.Thread(target=watch, daemon=True).start()


def architecture() -> str:
    """Returns the host's architecture in Lambda's terms."""
    return "arm64" if platform.machine().lower() in ("arm64", "aarch64") else "x86_64"


def localstack() -> Cloud:
    """Returns the LocalStack that compose.yaml starts."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")
    if not answers(endpoint):
        raise Failed(f"LocalStack does not respond at {endpoint}; start it with: "
                     f"docker compose -f {HERE / 'compose.yaml'} up -d")
    return Cloud(endpoint, "linux", dict(LOCALSTACK_PARAMETERS))


def localstack_native(log_dir: Path | None) -> Emulator:
    """Starts a LocalStack without Docker on a free port. It ends with this process, even if this process is killed."""
    java = shutil.which("java")
    if java is None:
        raise Failed("java was not found on the PATH; DynamoDB Local requires it; install it from https://adoptium.net")
    if not JARS.is_dir():
        raise Failed(f"DynamoDB Local was not found in {JARS}; install it with: make dynamodb-local")
    venv_python.LOCALSTACK.ensure()

    def command(logs: Path, data: Path) -> list[str]:
        return [str(venv_python.LOCALSTACK.python), str(HERE / "localstack_server.py"),
                str(logs), str(data), java, str(JARS)]

    return start_emulator("localstack", log_dir, command, localstack_environment, dict(LOCALSTACK_PARAMETERS))


def localstack_environment(data: Path, port: int) -> dict[str, str]:
    return {
        "GATEWAY_LISTEN": f"127.0.0.1:{port}",
        "LOCALSTACK_VOLUME_DIR": str(data / "volume"),
        "FILESYSTEM_ROOT": str(data / "root"),
        "OVERRIDE_IN_DOCKER": "0",
        "DNS_ADDRESS": "0",  # no DNS server
        "DISABLE_EVENTS": "1",  # no usage reports
        "SKIP_SSL_CERT_DOWNLOAD": "1",
        "LAMBDA_IGNORE_ARCHITECTURE": "1",
        "CFN_IGNORE_UNSUPPORTED_RESOURCE_TYPES": "1",  # HTTP APIs
        # Mappings wait up to 10 s after an empty receive; here they receive ten times a second.
        "LAMBDA_EVENT_SOURCE_MAPPING_POLL_INTERVAL_SEC": "0.01",
        "LAMBDA_EVENT_SOURCE_MAPPING_MAX_BACKOFF_ON_EMPTY_POLL_SEC": "0.1",
    }


def ministack(log_dir: Path | None, enforce_iam: bool, through: str = "") -> Emulator:
    """Starts ministack on a free port. It ends with this process, even if this process is killed.

    With enforce_iam, a function has only the permissions of its role. CREDENTIALS are the credentials of root.
    Functions send their requests to the endpoint in through, if it is not empty.
    """
    def command(logs: Path, data: Path) -> list[str]:
        return [sys.executable, str(HERE / "ministack_server.py"), str(logs), str(data)]

    def environment(data: Path, port: int) -> dict[str, str]:
        return {
            "STATE_DIR": str(data / "state"),
            "S3_DATA_DIR": str(data / "s3"),
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(port),
            "AUTH": "true" if enforce_iam else "false",
            **({"AWS_ENDPOINT_URL": through} if through else {}),
        }

    return start_emulator("ministack", log_dir, command, environment, {})


def start_emulator(name: str, log_dir: Path | None, command: Callable[[Path, Path], list[str]],
                   environment: Callable[[Path, int], dict[str, str]], parameters: dict[str, str]) -> Emulator:
    data = Path(tempfile.mkdtemp(prefix="perdure-local-"))
    logs = log_dir or data / "logs"
    try:
        logs.mkdir(parents=True, exist_ok=True)
        for _ in range(STARTS):
            port = free_port()
            settings = {**server_environment(data, port), **environment(data, port)}
            process = start(name, command(logs, data), settings, logs, data)
            endpoint = f"http://127.0.0.1:{port}"
            if answers_in_time(process, endpoint):
                return Emulator(endpoint, sys.platform, parameters, logs, process.pid,
                                name=name, process=process, data=data)
        log = logs / f"{name}.log"
        raise Failed(f"{name} failed to start; last lines of {log}:\n{tail(log)}")
    except BaseException:
        shutil.rmtree(data, ignore_errors=True)
        raise


def start(name: str, command: list[str], environment: dict[str, str], logs: Path, data: Path) -> subprocess.Popen:
    with open(logs / f"{name}.log", "ab") as log:
        return subprocess.Popen(command, env=environment, cwd=data, stdin=subprocess.PIPE, stdout=log, stderr=log,
                                start_new_session=True)


def server_environment(data: Path, port: int) -> dict[str, str]:
    """Returns a clean environment, because the functions inherit it."""
    temporary = data / "tmp"
    temporary.mkdir(exist_ok=True)
    return {
        **CREDENTIALS,
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(data),
        "TMPDIR": str(temporary),
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",  # otherwise the functions would call the real AWS
        "DOCKER_HOST": f"unix://{data}/none",  # ministack removes its own Docker containers
        "LOG_LEVEL": "INFO",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def answers_in_time(process: subprocess.Popen, endpoint: str) -> bool:
    """Reports whether the emulator responds in time, and ends an emulator that does not."""
    ready = False
    try:
        ready = becomes_ready(process, endpoint)
    finally:
        if not ready:
            end_group(process)
    return ready


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
    """Ends a server and the functions that it started, without saving their data."""
    if process.stdin is not None:
        process.stdin.close()  # the server ends when its standard input closes (orphan.py)
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
