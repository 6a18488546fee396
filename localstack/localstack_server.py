"""Starts LocalStack without Docker. Run by cloud.py, with a clean environment and LocalStack's own Python.

    localstack_server.py LOGS DATA JAVA JARS

Two things of LocalStack's are replaced: what runs functions (process_executor.py), and how it gets and starts
DynamoDB Local, which here is the one that Maven has fetched.
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
    """LocalStack's own way starts it in a session of its own, where it would outlive us."""

    def start(server: DynamodbServer) -> FuncThread:
        def serve(*_: Any) -> None:
            with open(log, "ab") as output:
                subprocess.run(dynamodb_local.command(java, jars, server.port), stdin=subprocess.DEVNULL,
                               stdout=output, stderr=output, check=True)

        return start_thread(serve, name="dynamodb-local")

    return start


if __name__ == "__main__":
    main()
