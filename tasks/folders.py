"""The files of a package in a directory, listed once and read when asked for."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from tasks.errors import PackageError
from tasks.places import Fault

#: What operating systems and editors leave behind; never part of a package.
_LEFT_BEHIND = frozenset({".DS_Store", "Thumbs.db", "__pycache__"})


class _State(NamedTuple):
    size: int
    modified: int
    changed: int
    inode: int


#: Nanoseconds after which no file system gives a second write the same time.
_SETTLED = 2_000_000_000

#: (path, state of the file) -> SHA-256. A changed file has another size, time or inode, so it is read again.
_digests: dict[tuple[str, _State], str] = {}


class FolderFiles(Mapping[str, bytes]):
    """A directory as {path inside it: bytes}.

    The listing is taken once. A file that changes before it is first read is refused, so that one object never mixes
    two states of a folder; all but the chart is kept once read, so that a task stays what it was when it was loaded.
    Symbolic links and other special files are not followed; `refused` names them.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.refused: list[Fault] = []
        self._states: dict[str, _State] = {}
        self._kept: dict[str, bytes] = {}
        self._list(root, "")

    def _list(self, folder: Path, prefix: str) -> None:
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            self.refused.append(Fault(prefix.rstrip("/"), f"the folder cannot be read: {error.strerror}"))
            return
        for entry in entries:
            path = prefix + entry.name
            if entry.name in _LEFT_BEHIND:
                continue
            if entry.is_symlink():
                self.refused.append(Fault(path, "a symbolic link; put the file itself there"))
            elif entry.is_dir(follow_symlinks=False):
                self._list(folder / entry.name, f"{path}/")
            elif entry.is_file(follow_symlinks=False):
                self._states[path] = _state(entry.stat(follow_symlinks=False))
            else:
                self.refused.append(Fault(path, "not a regular file; remove it"))

    def __getitem__(self, path: str) -> bytes:
        if path in self._kept:
            return self._kept[path]
        expected = self._states[path]
        # O_NOFOLLOW and fstat on the opened file: what was listed is what is read.
        try:
            descriptor = os.open(self.root / path, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError as error:
            raise PackageError(
                f"the file cannot be read: {error.strerror}.",
                where=str(self.root / path),
                remedy="Load the task again.",
            ) from None
        with os.fdopen(descriptor, "rb") as handle:
            status = os.fstat(handle.fileno())
            data = handle.read() if stat.S_ISREG(status.st_mode) else b""
        if _state(status) != expected or len(data) != expected.size:
            raise PackageError(
                "the file changed while the task was being read.",
                where=str(self.root / path),
                remedy="Load the task again.",
            )
        if not path.startswith("chart/"):
            self._kept[path] = data
        return data

    def __iter__(self) -> Iterator[str]:
        return iter(self._states)

    def __len__(self) -> int:
        return len(self._states)

    def __contains__(self, path: object) -> bool:
        return path in self._states

    def sha256(self, path: str) -> str:
        """SHA-256 of one file, remembered for as long as size, times and inode stay."""
        state = self._states[path]
        key = (str(self.root / path), state)
        known = _digests.get(key)
        if known is not None:
            return known
        digest = sha256(self[path]).hexdigest()
        # A file written this moment can change once more within one tick of the clock and look the same.
        if time.time_ns() - max(state.modified, state.changed) > _SETTLED:
            _digests[key] = digest
        return digest


def _state(status: os.stat_result) -> _State:
    return _State(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
