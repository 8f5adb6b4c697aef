"""What the server keeps between runs of a page: Streamlit's cache, out of the garbage collector's sight.

Streamlit collects all generations after every run of a page; with a chart of 30,000 resources and thousands of trials
kept that took most of a second each time. What is kept has no cycles and goes when its cache lets go of it.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import streamlit as st

P = ParamSpec("P")
R = TypeVar("R")
_grown = threading.Event()


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
    """Take what was kept since the last call out of the collector's sight. Called at the end of every run."""
    if _grown.is_set():
        _grown.clear()
        gc.unfreeze()  # what the caches have let go of since, and sessions that ended
        gc.collect()
        gc.freeze()
