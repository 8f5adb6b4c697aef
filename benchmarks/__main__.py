"""`python -m benchmarks [name ...]`: every benchmark, or those named."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks


def names() -> list[str]:
    """The benchmark modules of this package."""
    return sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name != "__main__")


def main(asked: list[str]) -> int:
    """Run what was asked for, or everything; 1 where one missed its target, 2 for a name that is not there."""
    known = names()
    for name in asked:
        if name not in known:
            print(f"There is no benchmark named {name!r}. They are: {', '.join(known)}.", file=sys.stderr)
            return 2
    worst = 0
    for name in asked or known:
        print(f"== {name}")
        worst = max(worst, importlib.import_module(f"benchmarks.{name}").main() or 0)
        print()
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
