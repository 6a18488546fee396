"""Starts ministack with the settings that perdure needs. cloud.py runs it with a clean environment.

ministack is an emulator for tests of results. The tests of perdure also check times and concurrency, so this module
changes some of ministack's settings. All names below belong to ministack. Check them when you raise the pinned version.
"""

from __future__ import annotations

import functools
import os
import re
import socketserver
import sys
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO

import ministack.app
from ministack.core import lambda_runtime
from ministack.core.concurrency import esm_wake
from ministack.services import dynamodb, eventbridge, lambda_svc, s3, scheduler
from ministack.services.cloudformation import provisioners

import ministack_iam
import orphan
import originguard

TICK_SECONDS = 0.25  # interval for schedules and rules; the default of ministack is 10
WAKE_SECONDS = 0.1  # interval for messages whose delay or visibility timeout has ended; the default of ministack is 1
GAP_SECONDS = 0.002  # pause of a mapping after an empty receive; the default of ministack is 0.05


def main() -> None:
    logs, data = Path(sys.argv[1]), Path(sys.argv[2])
    # Otherwise each warm invocation waits 40 ms for a delayed TCP acknowledgement.
    socketserver.StreamRequestHandler.disable_nagle_algorithm = True
    scheduler._SCHEDULE_TICK_INTERVAL = TICK_SECONDS
    eventbridge._SCHEDULER_TICK_INTERVAL = TICK_SECONDS
    lambda_svc._ESM_IDLE_WAKE_GAP_SECONDS = GAP_SECONDS
    run_fifo_groups_side_by_side()
    parse_expressions_once()
    take_alarms_with_metric_math()
    give_buckets_their_lifecycle()
    write_function_output_to(logs)
    ministack.app.app = reject_other_origins(ministack.app.app)
    if os.environ["AUTH"] == "true":
        ministack_iam.correct()
    in_background(wake_mappings)
    orphan.end_with_parent(data, end_functions)
    sys.argv = sys.argv[:1]
    ministack.app.main()


def run_fifo_groups_side_by_side() -> None:
    """Makes a FIFO mapping run several batches concurrently, as on AWS.

    ministack runs one batch at a time. Its queue already withholds every message group that is in flight, so messages
    of a group stay in order.
    """
    limit = lambda_svc._sqs_esm_concurrency

    def without_queue(esm: dict, function: dict, config: dict, _queue: Any = None) -> int:
        return limit(esm, function, config)

    lambda_svc._sqs_esm_concurrency = without_queue


# The key conditions that perdure uses, in ministack's terms.
KEY_CONDITION = re.compile(
    r"(#?\w+) = (:\w+)(?: AND (?:(#?\w+) BETWEEN (:\w+) AND (:\w+)|begins_with\((#?\w+), (:\w+)\)))?")


def parse_expressions_once() -> None:
    """Caches parsed expressions.

    ministack parses and evaluates an expression again for every item of a partition, which takes nine tenths of the
    time of a large query.
    """
    evaluate, order = dynamodb._evaluate_condition, dynamodb._index_order_value

    @functools.lru_cache(maxsize=1024)
    def parse(expr: str) -> tuple | None:
        parsed = KEY_CONDITION.fullmatch(expr)
        return parsed and parsed.groups()

    def directly(expr: str, item: dict, values: dict, names: dict, slot: str = "ConditionExpression") -> bool:
        parsed = parse(expr) if slot == "KeyConditionExpression" else None
        if parsed is None:
            return evaluate(expr, item, values, names, slot=slot)
        pk, is_, sk, low, high, path, prefix = parsed
        try:
            if item[names.get(pk, pk)]["S"] != values[is_]["S"]:
                return False
            if sk:
                return values[low]["S"] <= item[names.get(sk, sk)]["S"] <= values[high]["S"]
            return not path or item[names.get(path, path)]["S"].startswith(values[prefix]["S"])
        except KeyError:  # a number, or empty
            return evaluate(expr, item, values, names, slot=slot)

    def ordered(item: dict, name: str, kind: str) -> Any:
        if kind == "S":
            try:
                return item[name]["S"]
            except KeyError:
                pass
        return order(item, name, kind)

    dynamodb._evaluate_condition, dynamodb._index_order_value = directly, ordered
    tokenize = functools.lru_cache(maxsize=1024)(dynamodb._tokenize)
    dynamodb._tokenize = lambda text: list(tokenize(text))
    dynamodb._condition_syntax_error = functools.lru_cache(maxsize=1024)(dynamodb._condition_syntax_error)


def take_alarms_with_metric_math() -> None:
    """Replaces the metric math of an alarm with its first metric.

    Otherwise ministack rejects the stack. Local code does not read the state of alarms.
    """
    record = provisioners._cw_metric_alarm_record

    def of_one_metric(name: str, props: dict) -> dict:
        for query in props.get("Metrics") or []:
            stat = query.get("MetricStat")
            if stat:
                props = {**props, "Metrics": None, **stat["Metric"], "Statistic": stat["Stat"], "Period": stat["Period"]}
                break
        return record(name, props)

    provisioners._cw_metric_alarm_record = of_one_metric


def give_buckets_their_lifecycle() -> None:
    """Adds the template's lifecycle rules to buckets, because ministack ignores those that expire objects below a
    prefix."""
    def to_xml(lifecycle: dict) -> bytes:
        return "".join(["<LifecycleConfiguration>", *map(rule, lifecycle.get("Rules", [])), "</LifecycleConfiguration>"]).encode()

    def rule(r: dict) -> str:
        return (f"<Rule><ID>{r['Id']}</ID><Filter><Prefix>{r['Prefix']}</Prefix></Filter><Status>{r['Status']}</Status>"
                f"<Expiration><Days>{r['ExpirationInDays']}</Days></Expiration></Rule>")

    provisioners._S3_BUCKET_CONFIGURATIONS = (
        *provisioners._S3_BUCKET_CONFIGURATIONS,
        ("LifecycleConfiguration", to_xml, s3._put_bucket_lifecycle, s3._delete_bucket_lifecycle))


def write_function_output_to(logs: Path) -> None:
    """Writes the output of a function to <logs>/<function>.log immediately.

    ministack shows the output only after the invocation, and waits 50 ms at the end of an invocation without output.
    With the file it does not wait.
    """
    worker = lambda_runtime.ProvidedWorker
    pump = worker._pump_output

    def pump_to_file(self: Any, stream: BinaryIO, lines: Any) -> None:
        with open(logs / f"{self.func_name}.log", "ab", buffering=0) as log:
            pump(self, Tee(stream, log), lines)

    worker._pump_output = pump_to_file
    worker._drain_stderr_bounded = lambda self, **_waits: self._drain_stderr()


def reject_other_origins(app: Any) -> Any:
    """Rejects requests from web pages of other origins, to protect the functions and their data like the API.

    ministack accepts every host name, and allows every origin to read its responses.
    """
    def header(scope: dict[str, Any], name: bytes) -> str:
        return ", ".join(value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name)

    async def guarded(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return await app(scope, receive, send)
        rejection = originguard.check(originguard.emulator_host, header(scope, b"host"),
                                      header(scope, b"sec-fetch-site"), header(scope, b"origin"))
        if rejection is None:
            return await app(scope, receive, send)
        if scope["type"] == "websocket":
            return await send({"type": "websocket.close", "code": 1008})
        await send({"type": "http.response.start", "status": rejection.status, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": f"{rejection.detail}\n".encode()})

    return guarded


class Tee:
    """A stream that also writes its lines to a log."""

    def __init__(self, stream: BinaryIO, log: BinaryIO) -> None:
        self.stream, self.log = stream, log

    def readline(self) -> bytes:
        line = self.stream.readline()
        self.log.write(line)
        return line

    def close(self) -> None:
        self.stream.close()


def wake_mappings() -> None:
    while True:
        time.sleep(WAKE_SECONDS)
        esm_wake.set()


def end_functions() -> None:
    """Ends the functions. They are in the process group of this server, but waiting for them avoids zombies."""
    for worker in [worker for pool in list(lambda_runtime._workers.values()) for worker in pool]:
        process = worker._proc
        if process is not None:
            process.kill()
            process.wait()


def in_background(target: Any, *args: Any) -> None:
    threading.Thread(target=target, args=args, daemon=True).start()


if __name__ == "__main__":
    main()
