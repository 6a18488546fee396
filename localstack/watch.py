"""Invokes the renewer more often than a rule can.

The rule of the template invokes the renewer on AWS and on ministack, but a rule has a resolution of a minute. Tests of
the sweeper need shorter intervals.
"""

from __future__ import annotations

import json
import sys
import threading
from datetime import datetime, timezone
from typing import Any

import deploy


def every(seconds: float, endpoint: str, hub: str, stopped: threading.Event) -> None:
    """Invokes the hub's renewer from another thread until it is stopped."""
    client = deploy.aws(endpoint, "lambda")

    def loop() -> None:
        while not stopped.wait(seconds):
            invoke(client, hub)

    threading.Thread(target=loop, daemon=True).start()


def invoke(client: Any, hub: str) -> None:
    try:
        client.invoke(FunctionName=f"perdure-{hub}-renewer", InvocationType="Event", Payload=event())
    except Exception as error:  # the next invocation may succeed, so the thread must not end
        print(f"watch: {error}", file=sys.stderr)


def event() -> bytes:
    """Returns the scheduled event that EventBridge sends."""
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps({
        "version": "0", "id": "local", "detail-type": "Scheduled Event", "source": "aws.events",
        "account": "000000000000", "time": now, "region": "us-east-1", "resources": [], "detail": {},
    }).encode()
