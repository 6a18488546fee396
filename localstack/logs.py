"""Prints the logs of the functions, by instance, while they are written."""

from __future__ import annotations

import json
import sys
import threading
import zlib
from pathlib import Path
from typing import Any, TextIO

LOOK_SECONDS = 0.2
LAMBDA_LINES = ("START ", "END ", "REPORT ", "INIT_START ")
COLOURS = (36, 33, 35, 32, 34, 96, 93, 95, 92, 94)
INSTANCE_WIDTH = 20
OF_THE_LINE = {"time", "level", "msg", "instance"}  # other attributes follow as key=value
ALWAYS = ("WARN", "ERROR")


def follow(folder: Path, hub: str, instances: list[str], stopped: threading.Event, out: TextIO = sys.stderr) -> None:
    """Prints lines of the hub's functions from another thread. With instances, it prints only their lines."""
    files: dict[Path, TextIO] = {}

    def look() -> None:
        for path in folder.glob(f"perdure-{hub}-*.log"):
            if path not in files:
                files[path] = open(path, errors="replace")
            name = path.stem.removeprefix(f"perdure-{hub}-")
            for line in whole_lines(files[path]):
                text = shown(name, line, instances, colour=out.isatty())
                if text:
                    print(text, file=out, flush=True)

    def loop() -> None:
        while not stopped.wait(LOOK_SECONDS):
            look()
        look()
        for file in files.values():
            file.close()

    threading.Thread(target=loop, daemon=True).start()


def whole_lines(file: TextIO) -> list[str]:
    """Returns the complete lines that were written since the last call. An incomplete line is left for the next call.
    """
    lines = []
    while True:
        place = file.tell()
        line = file.readline()
        if not line.endswith("\n"):
            file.seek(place)
            return lines
        lines.append(line.rstrip("\n"))


def shown(function: str, line: str, instances: list[str], colour: bool) -> str:
    """Formats a line. It returns an empty text for a line without an instance, an error or output of user code."""
    try:
        entry = json.loads(line)
    except ValueError:
        entry = None
    if not isinstance(entry, dict):  # output of print, of a panic, or of Lambda itself
        return "" if instances or line.startswith(LAMBDA_LINES) or not line else f"{'-':{INSTANCE_WIDTH}} {function}: {line}"
    instance, level = str(entry.get("instance", "")), str(entry.get("level", "INFO"))
    if instances and instance not in instances or not instance and level not in ALWAYS and "msg" in entry and ours(entry):
        return ""
    rest = " ".join(f"{key}={value(entry[key])}" for key in entry if key not in OF_THE_LINE)
    name = f"{instance or '-':{INSTANCE_WIDTH}}"
    if colour and instance:
        name = f"\033[{COLOURS[zlib.crc32(instance.encode()) % len(COLOURS)]}m{name}\033[0m"
    mark = f"{level} " if level != "INFO" else ""
    return f"{str(entry.get('time', ''))[11:23]} {name} {function}: {mark}{entry.get('msg', '')} {rest}".rstrip()


def ours(entry: dict[str, Any]) -> bool:
    """Reports whether the engine logs the line about its own work, such as a sweep."""
    return any(key in entry for key in ("duty", "build", "queue"))


def value(of: Any) -> str:
    text = of if isinstance(of, str) else json.dumps(of)
    return json.dumps(text) if " " in text or "\n" in text else text
