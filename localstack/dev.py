"""The development loop: rebuilds changed functions and deploys them to the running cloud. Instances continue."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import build
import cloud
from deploy import ClientError

LOOK_SECONDS = 0.2
Say = Callable[[str], None]
Files = dict[Path, tuple[int, int]]


def loop(app: Path, deploy_again: Callable[[], None], say: Say) -> None:
    """Calls deploy_again after each change of the application's files, until an exception occurs."""
    watched = build.sources(app)
    seen = look(watched)
    say("watching for changes; press Ctrl-C to stop")
    while True:
        time.sleep(LOOK_SECONDS)
        now = look(watched)
        if now == seen:
            continue
        changed = sorted(path for path in {*now, *seen} if now.get(path) != seen.get(path))
        seen = now
        say(f"changed: {', '.join(path.name for path in changed[:3])}{' ...' if len(changed) > 3 else ''}")
        started = time.monotonic()
        try:
            deploy_again()
            watched = build.sources(app)
        except (cloud.Failed, ClientError) as error:
            say(f"{error}\nthe previous build is still running")
            continue
        # Files that were saved during the build keep their old state here, so that the next check finds the change.
        seen = {path: seen.get(path, state) for path, state in look(watched).items()}
        say(f"running again, {time.monotonic() - started:.1f} s after the change")


def look(watched: build.Sources) -> Files:
    """Returns the state of each file that go build may read. It lists directories again to find new files."""
    found = {}
    for path in [*watched.files, *(file for folder in watched.folders for file in in_folder(folder))]:
        try:
            state = path.stat()
        except OSError:  # deleted in the meantime
            continue
        found[path] = (state.st_mtime_ns, state.st_size)
    return found


def in_folder(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.suffix in (".go", ".mod", ".sum", ".work", ".s")
                and not path.name.startswith(".") and not path.name.endswith("_test.go")]
    except OSError:
        return []
