"""Runs LocalStack's functions as processes of this machine.

LocalStack has one executor per environment of a function. Its own executor requires Docker. This executor supports
provided.* runtimes: it runs the `bootstrap` of the function's code and serves the runtime API for it
(https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html).
"""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from localstack.services.lambda_.invocation.executor_endpoint import StatusErrorException
from localstack.services.lambda_.invocation.lambda_models import FunctionVersion, InvocationResult
from localstack.services.lambda_.invocation.runtime_executor import RuntimeExecutor

import originguard

INIT_SECONDS = 10  # as on AWS, the time limit until a process requests its first invocation
LOOPBACK = "127.0.0.1"
PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass
class Invocation:
    """An event for a function, and its outcome."""

    request_id: str
    function_arn: str
    trace_id: str
    event: bytes
    deadline_ms: int
    outcome: Future[tuple[bytes, bool]] = field(default_factory=Future)  # the body, and whether it is an error


class Runtime:
    """A process of a function, and the runtime API from which it requests work. It handles one invocation at a time."""

    def __init__(self, command: Path, environment: dict[str, str], log: Path) -> None:
        self.waiting: queue.SimpleQueue[Invocation | None] = queue.SimpleQueue()
        self.current: Invocation | None = None
        self.ready: Future[None] = Future()  # the process has requested an invocation
        self.exited: Future[int] = Future()  # the exit status
        self.api = ThreadingHTTPServer((LOOPBACK, 0), handler(self))
        self.api.daemon_threads = True
        threading.Thread(target=self.api.serve_forever, daemon=True).start()
        address = f"{LOOPBACK}:{self.api.server_address[1]}"
        with open(log, "ab") as output:
            self.process = subprocess.Popen(
                [str(command)], cwd=command.parent, env={**environment, "AWS_LAMBDA_RUNTIME_API": address},
                stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self) -> None:
        self.exited.set_result(self.process.wait())

    def next(self) -> Invocation | None:
        """Waits for the next invocation. None means the end."""
        if not self.ready.done():
            self.ready.set_result(None)
        self.current = self.waiting.get()
        return self.current

    def settle(self, request_id: str, body: bytes, is_error: bool) -> bool:
        """Ends the current invocation. It returns False if the request belongs to another one."""
        current, self.current = self.current, None
        if current is None or current.request_id != request_id:
            return False
        current.outcome.set_result((body, is_error))
        return True

    def run(self, invocation: Invocation, seconds: float) -> None:
        """Runs an invocation. It returns when the invocation or the process has ended, or the time limit has expired.
        """
        self.waiting.put(invocation)
        wait([invocation.outcome, self.exited], seconds, FIRST_COMPLETED)

    def end(self) -> None:
        self.process.kill()
        self.exited.result()
        self.waiting.put(None)
        self.api.shutdown()
        self.api.server_close()


def handler(runtime: Runtime) -> type[BaseHTTPRequestHandler]:
    """Returns a request handler that serves the runtime API of one process."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # otherwise a response waits 40 ms for a delayed TCP acknowledgement

        def parse_request(self) -> bool:
            """Rejects requests of web pages, which could otherwise take or complete an invocation."""
            if not super().parse_request():
                return False
            host, site, origin = (", ".join(self.headers.get_all(name, [])) for name in ("Host", "Sec-Fetch-Site", "Origin"))
            rejection = originguard.check(originguard.own_host(self.server.server_address[1]), host, site, origin)
            if rejection:
                self.close_connection = True
                self.answer(rejection.status, rejection.detail.encode())
            return rejection is None

        def do_GET(self) -> None:
            """Serves /2018-06-01/runtime/invocation/next."""
            invocation = runtime.next()
            if invocation is None:
                self.close_connection = True
                return
            self.answer(200, invocation.event, {
                "Content-Type": "application/json",
                "Lambda-Runtime-Aws-Request-Id": invocation.request_id,
                "Lambda-Runtime-Deadline-Ms": str(invocation.deadline_ms),
                "Lambda-Runtime-Invoked-Function-Arn": invocation.function_arn,
                "Lambda-Runtime-Trace-Id": invocation.trace_id,
            })

        def do_POST(self) -> None:
            """Serves /2018-06-01/runtime/invocation/<request>/response and error, and /2018-06-01/runtime/init/error.
            """
            try:
                body = self.body()
            except ValueError:  # the end of the body is unknown
                self.close_connection = True
                self.answer(400)
                return
            request_id, what = self.path.split("/")[-2:]
            if request_id == "init":
                self.answer(202)  # the process ends by itself
                return
            settled = runtime.settle(request_id, body, is_error=what == "error")
            self.answer(202 if settled else 400)

        def body(self) -> bytes:
            if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                return self.rfile.read(size_of(self.headers.get("Content-Length") or "0", 10))
            chunks = []
            while size := size_of(self.rfile.readline().split(b";")[0].strip().decode("latin-1"), 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass  # trailers
            return b"".join(chunks)

        def answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Writes nothing: the function's output has its own log."""

    return Handler


def size_of(digits: str, base: int) -> int:
    """Returns the number of bytes to read. int alone accepts a sign, and a read of -1 bytes ends only with the
    connection."""
    if not digits.isalnum():
        raise ValueError(digits)
    return int(digits, base)


class ProcessExecutor(RuntimeExecutor):
    """One environment of a function. Set logs before you create the first one."""

    logs: Path
    runtime: Runtime
    environment: dict[str, str]

    def start(self, env_vars: dict[str, str]) -> None:
        # LocalStack's values can be numbers. PATH is the part of the system that a function may expect.
        self.environment = {"PATH": PATH, **{name: str(value) for name, value in env_vars.items()}}
        self.launch()

    def launch(self) -> None:
        code = self.function_version.config.code
        code.prepare_for_execution()
        command = Path(code.get_unzipped_code_location()) / "bootstrap"
        name = self.function_version.id.function_name
        self.runtime = Runtime(command, self.environment, self.logs / f"{name}.log")
        wait([self.runtime.ready, self.runtime.exited], INIT_SECONDS, FIRST_COMPLETED)
        if not self.runtime.ready.done():
            self.runtime.end()
            raise failure("Runtime.ExitError", f"{name} did not request an invocation: it ended, or took longer "
                                               f"than {INIT_SECONDS} s")

    def invoke(self, payload: dict[str, str]) -> InvocationResult:
        """Runs one invocation. If the process dies or exceeds the time limit, its environment also ends."""
        if self.runtime.exited.done():  # the process died while it was idle
            self.runtime.end()
            self.launch()
        seconds = float(self.function_version.config.timeout)
        invocation = Invocation(
            request_id=payload["invoke-id"], function_arn=payload["invoked-function-arn"], trace_id=payload["trace-id"],
            event=payload["payload"].encode(), deadline_ms=int((time.time() + seconds) * 1000))
        self.runtime.run(invocation, seconds)
        if invocation.outcome.done():
            body, is_error = invocation.outcome.result()
            return InvocationResult(invocation.request_id, body, is_error, logs=f"END RequestId: {invocation.request_id}")
        if self.runtime.exited.done():
            raise failure("Runtime.ExitError", f"RequestId: {invocation.request_id} Error: Runtime exited with "
                                               f"status {self.runtime.exited.result()}")
        raise failure("Sandbox.Timedout", f"RequestId: {invocation.request_id} Error: Task timed out after {seconds:.2f} seconds")

    def stop(self) -> None:
        if hasattr(self, "runtime"):
            self.runtime.end()

    def get_address(self) -> str:
        return LOOPBACK

    def get_endpoint_from_executor(self) -> str:
        return LOOPBACK

    def get_runtime_endpoint(self) -> str:
        return ""  # only LocalStack's own containers call this method

    def get_logs(self) -> str:
        return ""

    @classmethod
    def prepare_version(cls, function_version: FunctionVersion) -> None:
        function_version.config.code.prepare_for_execution()

    @classmethod
    def cleanup_version(cls, function_version: FunctionVersion) -> None:
        """Does nothing, because LocalStack deletes the code."""


def failure(kind: str, message: str) -> StatusErrorException:
    """Returns the error that a caller of the function receives, in AWS's format. LocalStack then stops the environment.
    """
    return StatusErrorException(message, json.dumps({"errorType": kind, "errorMessage": message}).encode())
