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
        raise interrupt()

    for each in signals:
        signal.signal(each, first)
    sys.unraisablehook = raise_again


def raise_again(swallowed: Any) -> None:
    """Python swallows what is raised while it deletes an object, and a signal may come just then: it is raised again soon."""
    if not isinstance(swallowed.exc_value, Interrupt):
        sys.__unraisablehook__(swallowed)
        return
    interrupt = swallowed.exc_value

    def again(_number: int, _frame: Any) -> None:
        raise interrupt

    signal.signal(signal.SIGALRM, again)
    signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
