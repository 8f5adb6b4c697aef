"""write_file: text into the trial's workspace, and nowhere else.

The path is walked component by component with O_NOFOLLOW below an open folder, so that no symlink, `..` or race leads
out of it. What would leave it is refused before anything is written.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from runtime.tools.declaration import Call, Place, Required, Tool, error_text
from tasks.fhir.resources import dump_json

#: Largest file, and largest sum of all files, that a trial may write: UTF-8 bytes.
MAX_FILE_BYTES = 10_000_000
MAX_WORKSPACE_BYTES = 50_000_000
MAX_FILES = 500

ROOT = "/workspace/output"


class Refused(ValueError):
    """A path or a size that write_file does not accept; the message is for the model."""


def parts_of(file_path: str) -> tuple[str, ...]:
    """The path below the output folder: `/workspace/output/x`, `output/x` and `x` are the same file.

    Raises Refused for a path that is empty, names a folder, leaves the output folder or cannot be a file name.
    """
    if any(ord(letter) < 32 or letter == "\x7f" for letter in file_path):
        raise Refused("the path holds a control character")
    if "\\" in file_path:
        raise Refused("the path holds a backslash; separate folders with /")
    if file_path.startswith("/"):
        if file_path != ROOT and not file_path.startswith(f"{ROOT}/"):
            raise Refused(f"files go below {ROOT}/ and nowhere else")
        rest = file_path[len(ROOT) :]
    else:
        rest = file_path
    parts = [part for part in rest.split("/") if part not in ("", ".")]
    if not file_path.startswith("/"):
        for root in (["workspace", "output"], ["output"]):
            if parts[: len(root)] == root and len(parts) > len(root):
                parts = parts[len(root) :]
                break
    if ".." in parts:
        raise Refused(f"the path leaves {ROOT}/; write it without ..")
    if not parts or file_path.endswith(("/", "/.")):
        raise Refused(f"the path names no file; write it as {ROOT}/<file>")
    if any(part.startswith("~") for part in parts[:1]):
        raise Refused(f"~ has no meaning here; write the path as {ROOT}/<file>")
    return tuple(parts)


class WriteFile(Tool):
    """Write text to a file below /workspace/output/; folders on the way are made. Mode w replaces, a appends."""

    tool: ClassVar[str] = "write_file"
    writes: ClassVar[bool] = True

    file_path: Required = Field(description=f"where to write, {ROOT}/<file>")
    content: str = Field(description="the text")
    mode: Literal["w", "a"] = Field(default="w", description="w to replace the file, a to append to it")

    def run(self, place: Place) -> Call:
        try:
            parts = parts_of(self.file_path)
            try:
                data = self.content.encode("utf-8")
            except UnicodeEncodeError:
                raise Refused("the content is not valid Unicode text (half of a surrogate pair)") from None
            size = write_below(place.output, parts, data, append=self.mode == "a")
        except Refused as fault:
            return Call(
                error_text(f"write_file wrote nothing: {fault}", fields=[_field(fault)]), error=True, request=""
            )
        return Call(dump_json({"file_path": "/".join((ROOT, *parts)), "mode": self.mode, "bytes": size}), False, "")


def _field(fault: Refused) -> dict[str, str]:
    name = "content" if str(fault).startswith(("the content", "the file would")) else "file_path"
    return {"field": name, "problem": str(fault)}


def write_below(folder: Path, parts: tuple[str, ...], data: bytes, *, append: bool) -> int:
    """Write a file below `folder` and return its size in bytes; whole or not at all. Raises Refused, OSError."""
    if len(data) > MAX_FILE_BYTES:
        raise Refused(f"the content is {len(data):,} bytes; a file may have {MAX_FILE_BYTES:,}")
    try:
        with _opened(folder, parts[:-1]) as holder:
            return _put(holder, parts[-1], data, append=append, used=_usage(folder))
    except OSError as fault:
        if fault.errno in (errno.ELOOP, errno.ENOTDIR):
            raise Refused("the path leads through a link or a file, not a folder") from None
        if fault.errno in (errno.EISDIR, errno.ENAMETOOLONG, errno.EILSEQ):
            raise Refused("the path names a folder, or is too long to be a file name") from None
        raise


def _put(holder: int, name: str, data: bytes, *, append: bool, used: tuple[int, int]) -> int:
    old = b""
    try:
        reader = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=holder)
    except FileNotFoundError:
        existing = 0
        if used[1] >= MAX_FILES:
            raise Refused(f"the workspace holds {MAX_FILES} files already") from None
    else:
        with os.fdopen(reader, "rb") as stream:
            existing = os.fstat(stream.fileno()).st_size
            if append:
                old = stream.read(MAX_FILE_BYTES + 1)
    size = len(old) + len(data)
    if size > MAX_FILE_BYTES:
        raise Refused(f"the file would have {size:,} bytes; a file may have {MAX_FILE_BYTES:,}")
    if used[0] - existing + size > MAX_WORKSPACE_BYTES:
        raise Refused(f"the file would fill the workspace; all files together may have {MAX_WORKSPACE_BYTES:,} bytes")
    draft = f".{secrets.token_hex(8)}.part"
    writer = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=holder)
    try:
        with os.fdopen(writer, "wb") as stream:
            stream.write(old + data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(draft, name, src_dir_fd=holder, dst_dir_fd=holder)
    except BaseException:
        os.unlink(draft, dir_fd=holder)
        raise
    return size


@contextmanager
def _opened(folder: Path, parts: tuple[str, ...]) -> Iterator[int]:
    """A descriptor of the folder `parts` below `folder`, made on the way, no link followed."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    folder.mkdir(parents=True, exist_ok=True)
    here = os.open(folder, flags)
    try:
        for part in parts:
            with suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=here)
            there = os.open(part, flags, dir_fd=here)
            os.close(here)
            here = there
        yield here
    finally:
        os.close(here)


def _usage(folder: Path) -> tuple[int, int]:
    """(bytes, files) of everything below the folder; links are not followed."""
    size = count = 0
    for top, _, names in os.walk(folder):
        for name in names:
            size += (Path(top) / name).lstat().st_size
            count += 1
    return size, count
