"""Signals that interrupt the main thread in any state."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterable
from typing import Any

AGAIN_SECONDS = 0.05


class Interrupt(BaseException):
    """Interrupts the main thread. Cleanup code runs on the way out. It is no Exception, so that error handlers do not
    catch it."""


def on(signals: Iterable[signal.Signals], interrupt: Callable[[], Interrupt]) -> None:
    """Raises an interrupt at the first of the signals and ignores later ones, because cleaning up is short."""
    signals = tuple(signals)

    def first(_number: int, _frame: Any) -> None:
        for each in signals:
            signal.signal(each, signal.SIG_IGN)
        insist(interrupt())

    for each in signals:
        signal.signal(each, first)
    sys.unraisablehook = say_unless_interrupted


def insist(interrupt: Interrupt) -> None:
    """Raises an interrupt, and raises it again until cleanup has started. Python ignores an exception while it deletes
    an object or closes an abandoned file, and a signal can arrive at that moment."""

    def again(_number: int, _frame: Any) -> None:
        if not on_its_way(interrupt):
            insist(interrupt)

    signal.signal(signal.SIGALRM, again)
    signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
    raise interrupt


def on_its_way(interrupt: Interrupt) -> bool:
    """Reports whether the running code cleans up after an interrupt."""
    error = sys.exc_info()[1]
    while error is not None and error is not interrupt:
        error = error.__context__
    return error is interrupt


def settle() -> None:
    """Stops raising the interrupt again, because it has arrived or none is expected."""
    signal.setitimer(signal.ITIMER_REAL, 0)


def say_unless_interrupted(swallowed: Any) -> None:
    """Reports an ignored exception unless it is an interrupt, which is raised again."""
    if not isinstance(swallowed.exc_value, Interrupt):
        sys.__unraisablehook__(swallowed)
