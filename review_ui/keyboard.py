"""The keyboard on a page of decisions: it stays on the same button of the next change, and a key held down counts once.

A decision button is another one for every change, so that no key decides on a change that was not seen. For a browser
it is gone then, and the keyboard with it to the top of the page.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import streamlit as st

_SCRIPT = """
let last = null;      // {family, element}: the button of a family that has the keyboard, or had it when it went
const familyOf = (element, families) => {
  const box = element && element.closest ? element.closest('[class*="st-key-"]') : null;
  return box ? families.find((one) => box.className.includes(`st-key-${one}-`)) || null : null;
};
const typing = (element) => element && (element.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName));

export default function (component) {
  const { families } = component.data;
  const came = (event) => {
    const family = familyOf(event.target, families);
    last = family ? { family, element: event.target } : null;
  };
  const went = (event) => {
    // Left by a person: the button is still there a moment later. One that was taken away is not.
    const before = last;
    setTimeout(() => {
      if (!event.relatedTarget && last === before && last && last.element.isConnected) last = null;
    }, 0);
  };
  const key = (event) => {
    if (!event.repeat || typing(event.target)) return;
    if (event.key === "Enter" || event.key === " " || /^[a-zA-Z]$/.test(event.key)) {
      event.preventDefault();
      event.stopImmediatePropagation();
    }
  };
  const look = () => {
    if (!last || last.element.isConnected || document.activeElement !== document.body) return;
    const next = document.querySelector(`[class*="st-key-${last.family}-"] button:not([disabled])`);
    if (next) next.focus({ preventScroll: true });
  };
  const watcher = new MutationObserver(look);
  watcher.observe(document.body, { childList: true, subtree: true });
  document.addEventListener("focusin", came);
  document.addEventListener("focusout", went);
  window.addEventListener("keydown", key, true);
  return () => {
    watcher.disconnect();
    document.removeEventListener("focusin", came);
    document.removeEventListener("focusout", went);
    window.removeEventListener("keydown", key, true);
  };
}
"""


@cache
def _component() -> Callable[..., Any]:
    return st.components.v2.component("workbench_keyboard", html="<span></span>", js=_SCRIPT, isolate_styles=False)


def steady(*families: str) -> None:
    """Keep the keyboard on buttons whose keys begin with one of these words and a hyphen."""
    _component()(key="keyboard", data={"families": list(families)})
