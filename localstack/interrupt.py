"""Signals that interrupt the main thread, whatever it does."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterable
from typing import Any

AGAIN_SECONDS = 0.05


class Interrupt(BaseException):
    """Cuts off what the main thread does; everything on the way out cleans up. No handler of errors takes it for one."""


def on(signals: Iterable[signal.Signals], interrupt: Callable[[], Interrupt]) -> None:
    """Raises an interrupt at the first of the signals and ignores the next ones: cleaning up is short."""
    signals = tuple(signals)

    def first(_number: int, _frame: Any) -> None:
        for each in signals:
            signal.signal(each, signal.SIG_IGN)
        insist(interrupt())

    for each in signals:
        signal.signal(each, first)
    sys.unraisablehook = say_unless_interrupted


def insist(interrupt: Interrupt) -> None:
    """Raises an interrupt, and again until it is on its way out. Python swallows what is raised while it deletes an object or closes a file that nobody
    has closed, and a signal may come just then."""

    def again(_number: int, _frame: Any) -> None:
        if not on_its_way(interrupt):
            insist(interrupt)

    signal.signal(signal.SIGALRM, again)
    signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
    raise interrupt


def on_its_way(interrupt: Interrupt) -> bool:
    """Reports whether what runs now cleans up behind an interrupt."""
    error = sys.exc_info()[1]
    while error is not None and error is not interrupt:
        error = error.__context__
    return error is interrupt


def settle() -> None:
    """Raises no interrupt again: the last one has come out, or none is to come."""
    signal.setitimer(signal.ITIMER_REAL, 0)


def say_unless_interrupted(swallowed: Any) -> None:
    """An interrupt that was swallowed is raised again, and nobody has to know."""
    if not isinstance(swallowed.exc_value, Interrupt):
        sys.__unraisablehook__(swallowed)
