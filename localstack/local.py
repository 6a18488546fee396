#!/usr/bin/env python3
"""Runs perdure on a local cloud: starts it, deploys the functions, serves the API.

    local.py up [--app DIR] [--exec COMMAND ...]
    local.py cloud --env-file PATH                   starts only the cloud, without a deployment

All processes that this program starts end with it, and its temporary files are deleted.
"""

from __future__ import annotations

import venv_python

if __name__ == "__main__":
    venv_python.run_inside()

import argparse
import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import build
import cloud
import deploy
import dev
import interrupt
import logs
import proxy
import watch

ROOT = Path(__file__).resolve().parent.parent
STARTED = time.monotonic()


class Stopped(interrupt.Interrupt):
    """SIGINT, SIGTERM or SIGHUP arrived."""


def say(text: str) -> None:
    print(f"[{time.monotonic() - STARTED:5.1f}s] {text}", file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    both = argparse.ArgumentParser(add_help=False)
    both.add_argument("--env-file", type=Path, help="JSON file with the environment, written when everything is running")
    both.add_argument("--log-dir", type=Path, help="directory for logs (default: a temporary one, deleted at exit)")
    both.add_argument("--enforce-iam", action="store_true", help="enforce the IAM roles of the functions")
    both.add_argument("--through", nargs=2, metavar=("URL", "PATH"), default=("", ""),
                      help="endpoint of a proxy for functions and clients; the emulator's endpoint is written to PATH")
    both.add_argument("--until-eof", action="store_true", help="stop when standard input closes")
    alone = commands.add_parser("cloud", parents=[both], help="start only the local cloud, until SIGINT or SIGTERM")
    alone.set_defaults(do=cloud_alone)
    up = commands.add_parser("up", parents=[both], help="start, deploy and serve until SIGINT or SIGTERM")
    up.set_defaults(do=deployed)
    up.add_argument("--app", type=Path, default=ROOT, help="directory with functions/ (default: this repository)")
    up.add_argument("--hub", default="default")
    up.add_argument("--param", type=deploy.parameter, action="append", default=[], metavar="Name=value",
                    help="a template parameter, such as InboxVisibility=5")
    up.add_argument("--port", type=int, default=int(os.environ.get("PORT") or 8080),
                    help="port of the API on 127.0.0.1, 0 for a free one (default: $PORT or 8080)")
    up.add_argument("--watch-every", type=float, metavar="SECONDS", help="interval at which the sweeper runs")
    up.add_argument("--keep", action="store_true", help="keep running after --exec")
    up.add_argument("--reload", action="store_true", default=bool(os.environ.get("WATCH")),
                    help="rebuild and redeploy on changes, and show logs (default: on if $WATCH is set)")
    up.add_argument("--instance", action="append", default=[], metavar="ID", help="instance whose logs --reload shows; repeatable")
    up.add_argument("--exec", nargs=argparse.REMAINDER, metavar="COMMAND",
                    help="command to run when everything is running; must be the last option")
    return parser.parse_args()


def deployed(args: argparse.Namespace, cleanup: contextlib.ExitStack) -> int:
    listener = proxy.listen(args.port)
    place = start_cloud(args, cleanup)
    # Use the directory of the cloud if it has one, so that both are deleted together.
    temporary = cleanup.enter_context(tempfile.TemporaryDirectory(
        prefix="perdure-build-", dir=getattr(place, "data", None), ignore_cleanup_errors=True))
    def build_and_deploy() -> dict[str, Any]:
        build.build(args.app.resolve(), Path(temporary), place.goos, say)
        return deploy.deploy(place.endpoint, args.hub, Path(temporary), {**place.parameters, **dict(args.param)}, say)

    found = build_and_deploy()
    say(f"deployed stack {found['stack']}")
    proxy.serve(listener, place.endpoint, found["apiHost"])
    if args.watch_every:
        stopped = threading.Event()
        cleanup.callback(stopped.set)
        watch.every(args.watch_every, place.endpoint, args.hub, stopped)
    api = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    variables = {"AWS_ENDPOINT_URL": args.through[0] or place.endpoint, **cloud.CREDENTIALS, "PERDURE_HUB": args.hub}
    announce(args, place, {"api": api, **found}, variables, cleanup)
    # PERDURE_API is not exported, because commands that need direct access would reject it.
    return serve(args, {**variables, "PERDURE_API": api},
                 functools.partial(reload, args, place, build_and_deploy, cleanup))


def reload(args: argparse.Namespace, place: cloud.Cloud, build_and_deploy: Callable[[], Any],
           cleanup: contextlib.ExitStack) -> None:
    if place.log_dir:
        stopped = threading.Event()
        cleanup.callback(stopped.set)
        logs.follow(place.log_dir, args.hub, args.instance, stopped)
    if args.until_eof:
        threading.Thread(target=stop_at_eof, daemon=True).start()
    dev.loop(args.app.resolve(), build_and_deploy, say)


def stop_at_eof() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


def cloud_alone(args: argparse.Namespace, cleanup: contextlib.ExitStack) -> int:
    place = start_cloud(args, cleanup)
    variables = {"AWS_ENDPOINT_URL": args.through[0] or place.endpoint, **cloud.CREDENTIALS}
    publish_environment(args, place, variables, {}, cleanup)
    wait(args)
    return 0


def start_cloud(args: argparse.Namespace, cleanup: contextlib.ExitStack) -> cloud.Cloud:
    which = os.environ.get("CLOUD") or "ministack"
    log_dir = args.log_dir.resolve() if args.log_dir else None
    if which != "ministack" and args.enforce_iam:
        raise cloud.Failed("--enforce-iam requires ministack; free releases of LocalStack do not enforce IAM")
    through, endpoint_file = args.through
    if which != "ministack" and through:
        raise cloud.Failed("--through requires ministack")
    if which == "localstack":
        return cloud.localstack()
    if which not in ("ministack", "localstack-native"):
        raise cloud.Failed(f"unknown CLOUD={which}; use ministack, localstack (with Docker) or localstack-native")
    say(f"starting {which} ...")
    place = (cloud.ministack(log_dir, args.enforce_iam, through) if which == "ministack"
             else cloud.localstack_native(log_dir))
    cleanup.callback(place.stop)
    place.die_with()
    if through:  # before the deployment, because deployed functions start at once
        write_json(Path(endpoint_file), {"endpoint": place.endpoint})
    say(f"{place.name} (pid {place.pid}) is running at {place.endpoint}")
    return place


def announce(args: argparse.Namespace, place: cloud.Cloud, found: dict[str, Any],
             variables: dict[str, str], cleanup: contextlib.ExitStack) -> None:
    say(f"API: {found['api']}")
    if place.log_dir:
        say(f"logs: {place.log_dir}")
    publish_environment(args, place, variables, found, cleanup)


def publish_environment(args: argparse.Namespace, place: cloud.Cloud, variables: dict[str, str],
                        found: dict[str, Any], cleanup: contextlib.ExitStack) -> None:
    for name, value in variables.items():
        print(f"export {name}={value}", flush=True)
    if args.env_file:
        cleanup.callback(args.env_file.unlink, missing_ok=True)
        write_json(args.env_file, {
            "env": variables, "pid": place.pid, "logDir": str(place.log_dir or ""), **found})


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Writes the file atomically, because other processes wait for it to appear."""
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_text(json.dumps(value, indent=2) + "\n")
    unfinished.replace(path)


def serve(args: argparse.Namespace, variables: dict[str, str], reloading: Callable[[], None]) -> int:
    code = 0
    if args.exec:
        code = run(args.exec, variables)
        if not args.keep:
            return code
        say(f"command exited with {code}")
    say("running; press Ctrl-C to stop")
    if args.reload:
        reloading()
    wait(args)
    return code


def wait(args: argparse.Namespace) -> None:
    if args.until_eof:
        sys.stdin.buffer.read()
    else:
        threading.Event().wait()


def run(command: list[str], variables: dict[str, str]) -> int:
    sys.stdout.flush()
    try:
        # Use a separate process group, so that child processes can be ended together with the command.
        process = subprocess.Popen(command, env={**os.environ, **variables}, start_new_session=True)
    except OSError as error:
        raise cloud.Failed(f"{command[0]}: {error.strerror}") from error
    try:
        return process.wait()
    except BaseException:
        end(process)
        raise


def end(process: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=5)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def main() -> int:
    args = arguments()
    interrupt.on([signal.SIGINT, signal.SIGTERM, signal.SIGHUP], Stopped)
    try:
        with contextlib.ExitStack() as cleanup:
            return args.do(args, cleanup)
    except Stopped:
        return 0
    except (cloud.Failed, cloud.Died, deploy.ClientError, OSError) as error:
        print(f"local: {error}", file=sys.stderr)
        return 1
    finally:
        interrupt.settle()


if __name__ == "__main__":
    sys.exit(main())
