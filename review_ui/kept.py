"""What the server keeps between runs of a page: Streamlit's cache, out of the garbage collector's sight.

Streamlit collects all generations after every run of a page; with a chart of 30,000 resources and thousands of trials
kept that took most of a second each time. What is kept has no cycles and goes when its cache lets go of it.

Taking it out of sight costs as much as one such collection. So it is done where much was added, and not for the view of
one change that a decision key adds; what came out of sight by chance and is garbage by now is looked for now and then.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import streamlit as st

P = ParamSpec("P")
R = TypeVar("R")
_grown = threading.Event()
#: As many objects in sight are collected in about 0.02 s.
_FEW = 100_000
#: Seconds between two looks at everything: 0.6 s with the charts named above.
_EVERY = 900.0
_looked = time.monotonic()


def kept(most: int, spinner: str = "") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Keep a function's results, the last `most` of them, for all sessions: nobody changes one.

    Arguments whose names begin with an underscore are not part of the key. `spinner`: what is said while it computes.
    """

    def decorate(make: Callable[P, R]) -> Callable[P, R]:
        @wraps(make)
        def made(*args: P.args, **kwargs: P.kwargs) -> R:
            _grown.set()
            return make(*args, **kwargs)

        return st.cache_resource(show_spinner=spinner or False, max_entries=most)(made)

    return decorate


def settle() -> None:
    """Take what was kept since the last call out of the collector's sight, if it is much. Called at the end of every
    run."""
    global _looked
    if not _grown.is_set():
        return
    _grown.clear()
    if len(gc.get_objects()) < _FEW:
        return
    if time.monotonic() - _looked > _EVERY:
        _looked = time.monotonic()
        gc.unfreeze()  # sessions that ended
    gc.collect()
    gc.freeze()
