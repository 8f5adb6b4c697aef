"""Reading a chart's files: a folder of NDJSON, one NDJSON file, or a Bundle, each also gzipped, or bytes by name.

A byte order mark and CRLF line ends are allowed. Lines end at a line feed and nowhere else: U+2028 inside a text is
part of it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from tasks.errors import ChartError
from tasks.fhir.resources import Resource, parse_json

_SUFFIXES = (".ndjson", ".json", ".ndjson.gz", ".json.gz")
#: A gzip file may claim to hold anything; this much of one is read, and no more.
MOST_BYTES = 1 << 30
_BLANK = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"


def chart_files(source: Path) -> dict[str, Path]:
    """The files that make up a chart, by name. Raises ChartError if there is none or one cannot be read."""
    if source.is_dir():
        found = {path.name: path for path in sorted(source.iterdir()) if path.name.endswith(_SUFFIXES)}
        if not found:
            raise ChartError(
                "the folder holds no FHIR file.", where=str(source), remedy="A chart is made of <Type>.ndjson files."
            )
        return found
    if not source.is_file():
        raise ChartError("there is no such file or folder.", where=str(source))
    return {source.name: source}


def read_files(paths: Mapping[str, Path]) -> dict[str, bytes]:
    """The bytes of files, as they are on disk."""
    try:
        return {name: path.read_bytes() for name, path in paths.items()}
    except OSError as fault:
        raise ChartError(f"the file cannot be read: {fault.strerror}.", where=str(fault.filename or "")) from None


def digest_of(files: Mapping[str, bytes]) -> str:
    """SHA-256 over the sorted (name, SHA-256 of the content) pairs, as hex."""
    whole = hashlib.sha256()
    for name in sorted(files):
        whole.update(f"{name}\0{hashlib.sha256(files[name]).hexdigest()}\n".encode())
    return whole.hexdigest()


#: A file changed this shortly before it was hashed may change again within one tick of its clock: not remembered.
_SETTLED_NS = 2_000_000_000


def remembered_digest(paths: Mapping[str, Path], memory: Path) -> str | None:
    """The digest that `remember_digest` kept for these files, if size, times and inode of each are still the same."""
    try:
        kept = json.loads(_memo(paths, memory).read_bytes())
        if kept["files"] == _stamps(paths):
            digest: str = kept["digest"]
            return digest
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def remember_digest(paths: Mapping[str, Path], memory: Path, digest: str) -> None:
    """Keep the digest of files that have settled, so that the next opening need not read them all."""
    now = time.time_ns()
    try:
        stamps = _stamps(paths)
        if any(max(stamp[1], stamp[2]) > now - _SETTLED_NS for stamp in stamps.values()):
            return
        memory.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=memory, prefix=".stamp-", delete=False, encoding="utf-8") as file:
            json.dump({"files": stamps, "digest": digest}, file)
        Path(file.name).replace(_memo(paths, memory))
    except OSError:
        return


def _memo(paths: Mapping[str, Path], memory: Path) -> Path:
    whole = hashlib.sha256(
        "\0".join(str(path.absolute()) for path in paths.values()).encode("utf-8", "surrogateescape")
    )
    return memory / f"stamp-{whole.hexdigest()[:32]}.json"


def _stamps(paths: Mapping[str, Path]) -> dict[str, list[int]]:
    stamps = {}
    for name, path in paths.items():
        stat = path.stat()
        stamps[name] = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]
    return stamps


def read_resources(files: Mapping[str, bytes]) -> Iterator[tuple[str, Resource]]:
    """(file:line, resource) of every resource in the files, in order.

    Raises ChartError, naming file and line, for what is not JSON or not a resource, for an empty file, and for a
    resource that stands twice.
    """
    seen: dict[str, str] = {}
    for name in sorted(files):
        empty = True
        for where, resource in _file(name, files[name]):
            empty = False
            if (first := seen.setdefault(resource.ref, where)) != where:
                raise ChartError(
                    f"the id of this {resource.type} is taken already, at {first}.",
                    where=where,
                    remedy="Every resource of a type has its own id.",
                )
            yield where, resource
        if empty:
            raise ChartError("the file holds no resource.", where=name, remedy="Restore its lines, or remove the file.")


def _file(name: str, content: bytes) -> Iterator[tuple[str, Resource]]:
    if name.endswith(".gz"):
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
                content = packed.read(MOST_BYTES + 1)
        except (OSError, EOFError, zlib.error):
            raise ChartError("the file is not whole gzip.", where=name, remedy="Copy it again.") from None
        if len(content) > MOST_BYTES:
            raise ChartError(
                f"the file unpacks to more than {MOST_BYTES >> 20} MB.",
                where=name,
                remedy="Split the chart into several.",
            )
    content = content.removeprefix(_BOM)
    if name.removesuffix(".gz").endswith(".json"):
        yield from _document(name, content)
        return
    start, number = 0, 0
    while start < len(content):
        end = content.find(b"\n", start)
        end = len(content) if end < 0 else end
        number += 1
        line = content[start:end].strip(_BLANK)
        start = end + 1
        if line:
            where = f"{name}:{number}"
            yield where, Resource.parse(_decoded(line, where), where=where)


def _document(name: str, content: bytes) -> Iterator[tuple[str, Resource]]:
    if not content.strip(_BLANK):
        return
    body = parse_json(content, where=name)
    if not isinstance(body, dict) or body.get("resourceType") != "Bundle":
        yield name, Resource.parse(_decoded(content, name), where=name)
        return
    entries = body.get("entry", [])
    if not isinstance(entries, list):
        raise ChartError("the entries of a Bundle are an array.", where=name)
    for number, entry in enumerate(entries):
        where = f"{name}: entry[{number}]"
        if not isinstance(entry, dict) or "resource" not in entry:
            raise ChartError("the entry has no resource.", where=where)
        yield where, Resource.from_body(entry["resource"], where=where)


def _decoded(line: bytes, where: str) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise ChartError(f"not UTF-8 at byte {fault.start} of the line.", where=where) from None
