"""Wakes the renewer more often than a rule can.

The template's rule does it on AWS and on ministack, but rules count in minutes;
tests of what the renewer revives cannot wait for that.
"""

from __future__ import annotations

import json
import sys
import threading
from datetime import datetime, timezone
from typing import Any

import deploy


def every(seconds: float, endpoint: str, hub: str, stopped: threading.Event) -> None:
    """Invokes the hub's renewer until stopped, from a thread of its own."""
    client = deploy.aws(endpoint, "lambda")

    def loop() -> None:
        while not stopped.wait(seconds):
            invoke(client, hub)

    threading.Thread(target=loop, daemon=True).start()


def invoke(client: Any, hub: str) -> None:
    try:
        client.invoke(FunctionName=f"perdure-{hub}-renewer", InvocationType="Event", Payload=event())
    except Exception as error:  # the next one may succeed; the thread must live
        print(f"watch: {error}", file=sys.stderr)


def event() -> bytes:
    """The scheduled event as EventBridge sends it."""
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps({
        "version": "0", "id": "local", "detail-type": "Scheduled Event", "source": "aws.events",
        "account": "000000000000", "time": now, "region": "us-east-1", "resources": [], "detail": {},
    }).encode()
