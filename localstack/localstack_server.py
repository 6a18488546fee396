"""Starts LocalStack without Docker. cloud.py runs it with a clean environment and LocalStack's own Python.

    localstack_server.py LOGS DATA JAVA JARS

It replaces two parts of LocalStack: the execution of functions (process_executor.py), and the installation and start of
DynamoDB Local, which Maven has downloaded here.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import localstack.runtime.main
from localstack.services.dynamodb.server import DynamodbServer
from localstack.services.lambda_.invocation.plugins import DockerRuntimeExecutorPlugin
from localstack.utils.threads import FuncThread, start_thread

import dynamodb_local
import orphan
from process_executor import ProcessExecutor


def main() -> None:
    logs, data, java, jars = sys.argv[1:]
    orphan.end_with_parent(Path(data))
    ProcessExecutor.logs = Path(logs)
    DockerRuntimeExecutorPlugin.load = lambda *_args, **_options: ProcessExecutor
    DynamodbServer.do_start_thread = starts_dynamodb_local(java, jars, Path(logs) / "dynamodb-local.log")
    sys.argv = sys.argv[:1]
    localstack.runtime.main.main()


def starts_dynamodb_local(java: str, jars: str, log: Path) -> Any:
    """Returns a start function for DynamoDB Local. LocalStack's own function starts DynamoDB Local in another session,
    so that it would outlive this process."""

    def start(server: DynamodbServer) -> FuncThread:
        def serve(*_: Any) -> None:
            with open(log, "ab") as output:
                subprocess.run(dynamodb_local.command(java, jars, server.port), stdin=subprocess.DEVNULL,
                               stdout=output, stderr=output, check=True)

        return start_thread(serve, name="dynamodb-local")

    return start


if __name__ == "__main__":
    main()
