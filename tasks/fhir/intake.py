"""Foreign FHIR in: a bundle, or a folder of bundles or of NDJSON, as resources that refer to each other by Type/id.

Nothing is lost in silence: what is not valid R4 is left out and counted by reason, and so is every reference that
then leads nowhere, every id that had to be given, and every id that stood for two different records.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.errors import ChartError, UsageError
from tasks.fhir.elements import check
from tasks.fhir.resources import ID, Resource, dump_json, parse_json, references

_NDJSON = (".ndjson", ".ndjson.gz", ".jsonl", ".jsonl.gz")
_BUNDLE = (".json", ".json.gz")
_RELATIVE = re.compile(r"([A-Z][A-Za-z]+)/([A-Za-z0-9\-.]{1,64})(?:/_history/[A-Za-z0-9\-.]{1,64})?", re.ASCII)
_CONDITIONAL = re.compile(r"([A-Z][A-Za-z]+)\?(.+)", re.ASCII)
#: Levels of objects and arrays in one resource. Real ones have some 15; a thousand would end any walk over them.
MAX_DEPTH = 100
_INDEX = re.compile(r"\[\d+\]")


@dataclass(frozen=True)
class Intake:
    """What was read.

    `dropped` counts what was left out, by reason. `dangling` counts references of what was kept that lead nowhere in
    it, as "Type.path -> TargetType". `notes` counts what was changed or decided on the way. No key holds record text.
    """

    resources: tuple[Resource, ...]
    dropped: Counter[str]
    dangling: Counter[str]
    notes: Counter[str]


@dataclass(frozen=True)
class _Found:
    """One resource as it stood in the input: where, under which fullUrl, and its parsed body."""

    where: str
    full_url: str
    body: dict[str, Any]
    raw: str


def read_records(path: Path, *, only_valid: bool = True) -> Intake:
    """Every resource under `path`: one bundle (.json, .json.gz), one NDJSON file, or a folder of either kind.

    References by urn:uuid, by fullUrl and by search (`Practitioner?identifier=...`) become Type/id where the target is
    in the input. With `only_valid`, what the R4 element table refuses is dropped. The result is sorted by type and id.

    Raises UsageError if there is nothing to read at `path`, ChartError for a file that is not what its name says.
    """
    dropped: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    files = _files(path)
    found: list[tuple[int, _Found]] = []
    for number, file in enumerate(files):
        entries = _ndjson(file, dropped) if file.name.endswith(_NDJSON) else _bundle(file, dropped)
        found += [(number, entry) for entry in entries]
    named = [(number, _with_id(_without_empty(entry, notes), notes)) for number, entry in found]
    urls = _Urls(named)
    by_identifier = _identifiers(entry for _, entry in named)
    resolved = [_resolved(entry, number, urls, by_identifier, notes) for number, entry in named]
    kept = _without_collisions(resolved, dropped, notes)
    if only_valid:
        kept = [resource for resource in kept if _valid(resource, dropped)]
    kept.sort(key=lambda resource: (resource.type, resource.id))
    known = {resource.ref for resource in kept}
    dangling: Counter[str] = Counter()
    for resource in kept:
        for at, target in (*references(resource.body), *attachments(resource.body)):
            if not target.startswith("#") and leads_to(target) not in known:
                dangling[f"{_INDEX.sub('', at)} -> {_target_kind(target)}"] += 1
    return Intake(tuple(kept), dropped, dangling, notes)


def leads_to(reference: str) -> str | None:
    """`Type/id` of a relative reference, its version left off; None for any other kind of reference."""
    match = _RELATIVE.fullmatch(reference)
    return f"{match[1]}/{match[2]}" if match else None


def too_deep(value: Any) -> bool:
    """Whether objects and arrays stand more than MAX_DEPTH levels inside each other."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            item
            for node in level
            for item in (node.values() if isinstance(node, dict) else node)
            if isinstance(item, (dict, list))
        ]
        if not level:
            return False
    return True


def attachments(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(path, `Binary/id`) of every attachment whose content is a resource of its own, as hospitals export notes."""
    stack: list[tuple[str, Any]] = [(str(body.get("resourceType", "")), body)]
    while stack:
        path, node = stack.pop()
        if isinstance(node, dict):
            url = node.get("url")
            if isinstance(url, str) and url.startswith("Binary/") and leads_to(url):
                yield f"{path}.url", url
            stack.extend((f"{path}.{key}", value) for key, value in node.items() if isinstance(value, (dict, list)))
        elif isinstance(node, list):
            stack.extend((path, item) for item in node if isinstance(item, (dict, list)))


def as_chart_files(resources: tuple[Resource, ...]) -> dict[str, bytes]:
    """The Bulk Data layout: `<Type>.ndjson` to its lines, sorted by id."""
    lines: dict[str, list[Resource]] = {}
    for resource in resources:
        lines.setdefault(resource.type, []).append(resource)
    return {
        f"{type}.ndjson": "".join(f"{row.raw}\n" for row in sorted(rows, key=lambda row: row.id)).encode()
        for type, rows in sorted(lines.items())
    }


def _files(path: Path) -> list[Path]:
    if path.is_file():
        if not path.name.endswith(_NDJSON + _BUNDLE):
            raise UsageError(
                "This is neither a bundle nor NDJSON by its name.",
                where=str(path),
                remedy="Give a .json or .ndjson file (.gz too), or a folder of them.",
            )
        return [path]
    if not path.is_dir():
        raise UsageError("There is no such file or folder.", where=str(path))
    files = sorted(file for file in path.iterdir() if file.is_file() and file.name.endswith(_NDJSON + _BUNDLE))
    if not files:
        inner = path / "chart"
        remedy = f"Did you mean {inner}?" if inner.is_dir() else ""
        raise UsageError("The folder holds no .json and no .ndjson file (.gz too).", where=str(path), remedy=remedy)
    return files


def read_text(file: Path) -> str:
    """The file's text, unpacked if its name ends in .gz, without a byte order mark. Raises ChartError, UsageError."""
    try:
        data = file.read_bytes()
        if file.name.endswith(".gz"):
            data = gzip.decompress(data)
        return data.decode("utf-8-sig")
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise ChartError("The file is not gzip, or is cut short.", where=file.name) from None
    except UnicodeDecodeError as fault:
        raise ChartError(f"The file is not UTF-8 at byte {fault.start}.", where=file.name) from None
    except OSError as fault:
        raise UsageError(f"The file cannot be read: {fault.strerror}.", where=file.name) from None


def _ndjson(file: Path, dropped: Counter[str]) -> Iterator[_Found]:
    for number, line in enumerate(read_text(file).split("\n"), 1):
        raw = line.strip(" \t\r")
        if not raw:
            continue
        where = f"{file.name}:{number}"
        try:
            body = parse_json(raw, where=where)
        except ChartError:
            dropped["the line is not JSON, or has a key twice"] += 1
            continue
        yield from _entry(where, "", body, raw, dropped)


def _bundle(file: Path, dropped: Counter[str]) -> Iterator[_Found]:
    body = parse_json(read_text(file), where=file.name)
    if not isinstance(body, dict) or body.get("resourceType") != "Bundle":
        if isinstance(body, dict) and isinstance(body.get("resourceType"), str):
            yield from _entry(file.name, "", body, "", dropped)
            return
        raise ChartError("The file is not a FHIR Bundle.", where=file.name)
    entries = body.get("entry", [])
    if not isinstance(entries, list):
        raise ChartError("Bundle.entry is not a list.", where=file.name)
    for number, entry in enumerate(entries):
        where = f"{file.name}: entry[{number}]"
        if not isinstance(entry, dict) or not isinstance(entry.get("resource"), dict):
            dropped["a bundle entry without a resource"] += 1
            continue
        resource = entry["resource"]
        if resource.get("resourceType") == "OperationOutcome":
            dropped["OperationOutcome of the server that made the bundle"] += 1
            continue
        url = entry.get("fullUrl")
        yield from _entry(where, url if isinstance(url, str) else "", resource, "", dropped)


def _entry(where: str, url: str, body: Any, raw: str, dropped: Counter[str]) -> Iterator[_Found]:
    if not isinstance(body, dict) or not isinstance(body.get("resourceType"), str):
        dropped["no resourceType"] += 1
    elif body["resourceType"] == "Bundle":
        dropped["a Bundle inside the input"] += 1
    elif too_deep(body):
        dropped["nested too deeply to be FHIR"] += 1
    else:
        yield _Found(where, url, body, raw)


def _without_empty(entry: _Found, notes: Counter[str]) -> _Found:
    """The entry without arrays and objects that hold nothing: R4 does not allow them, and nothing is lost with them."""
    if not _has_empty(entry.body):
        return entry
    notes[f"{entry.body['resourceType']}: an empty array or object was removed"] += 1
    return _Found(entry.where, entry.full_url, _pruned(entry.body), "")


def _has_empty(node: Any) -> bool:
    if isinstance(node, dict):
        return not node or any(_has_empty(value) for value in node.values())
    if isinstance(node, list):
        return not node or any(_has_empty(item) for item in node)
    return False


def _pruned(node: Any, *, aligned: bool = False) -> Any:
    """`node` without empty arrays and objects. An `aligned` array (`_given` beside `given`) keeps its length."""
    if isinstance(node, dict):
        pairs = [(key, _pruned(value, aligned=key.startswith("_"))) for key, value in node.items()]
        return {key: value for key, value in pairs if not _is_empty(value)}
    if isinstance(node, list):
        items = [_pruned(item) for item in node]
        if aligned:
            return [None if _is_empty(item) else item for item in items]
        return [item for item in items if not _is_empty(item)]
    return node


def _is_empty(node: Any) -> bool:
    return isinstance(node, (dict, list)) and not node


def _with_id(entry: _Found, notes: Counter[str]) -> _Found:
    """The entry with an id: its own, else the uuid of its fullUrl, else one made from its content."""
    if "id" in entry.body:
        return entry
    ident = entry.full_url.rsplit("/", 1)[-1].rsplit(":", 1)[-1]
    if entry.full_url and ID.fullmatch(ident):
        notes["id taken from the fullUrl"] += 1
    else:
        ident = hashlib.sha256(dump_json(entry.body).encode()).hexdigest()[:32]
        notes["id made from the content: there was none"] += 1
    kind = entry.body["resourceType"]
    rest = {key: value for key, value in entry.body.items() if key != "resourceType"}
    return _Found(entry.where, entry.full_url, {"resourceType": kind, "id": ident, **rest}, "")


class _Urls:
    """Where a fullUrl leads: in the same file first, then in any other if they agree."""

    def __init__(self, entries: list[tuple[int, _Found]]) -> None:
        self._within: dict[tuple[int, str], str] = {}
        self._across: dict[str, str | None] = {}
        for number, entry in entries:
            if entry.full_url and isinstance(entry.body.get("id"), str):
                ref = f"{entry.body['resourceType']}/{entry.body['id']}"
                self._within.setdefault((number, entry.full_url), ref)
                if self._across.setdefault(entry.full_url, ref) != ref:
                    self._across[entry.full_url] = None
        self.with_binaries = any(ref is not None and ref.startswith("Binary/") for ref in self._across.values())

    def get(self, number: int, url: str) -> str | None:
        return self._within.get((number, url)) or self._across.get(url)


def _identifiers(entries: Iterator[_Found]) -> dict[tuple[str, str, str], set[str]]:
    """(type, system, value) -> Type/id of those that carry the identifier; system "*" stands for any."""
    found: dict[tuple[str, str, str], set[str]] = {}
    for entry in entries:
        identifiers = entry.body.get("identifier", [])
        for item in identifiers if isinstance(identifiers, list) else [identifiers]:
            if isinstance(item, dict) and isinstance(item.get("value"), str):
                kind, ref = entry.body["resourceType"], f"{entry.body['resourceType']}/{entry.body.get('id')}"
                for system in (str(item.get("system", "")), "*"):
                    found.setdefault((kind, system, item["value"]), set()).add(ref)
    return found


def _resolved(
    entry: _Found,
    number: int,
    urls: _Urls,
    by_identifier: Mapping[tuple[str, str, str], set[str]],
    notes: Counter[str],
) -> _Found:
    changes: dict[str, str] = {}
    for _, target in references(entry.body):
        if target.startswith("#"):
            continue
        base, mark, fragment = target.partition("#")
        ref = urls.get(number, base)
        if ref is None and (asked := _CONDITIONAL.fullmatch(target)):
            ref = _by_search(asked[1], asked[2], by_identifier)
            notes["reference by search, resolved" if ref else "reference by search, target not found"] += 1
        if ref is not None:
            changes[target] = ref + mark + fragment
    if not changes and not urls.with_binaries:
        return entry
    body = _rewritten(entry.body, changes, lambda url: urls.get(number, url))
    return entry if body == entry.body else _Found(entry.where, entry.full_url, body, "")


def _by_search(kind: str, query: str, by_identifier: Mapping[tuple[str, str, str], set[str]]) -> str | None:
    """The one resource that `identifier=system|value` means; None if none or several do, or for another search."""
    name, _, token = query.partition("=")
    if name != "identifier" or "&" in token:
        return None
    system, bar, value = token.replace("%7C", "|").replace("%7c", "|").partition("|")
    found = by_identifier.get((kind, system, value) if bar else (kind, "*", system), set())
    return next(iter(found)) if len(found) == 1 else None


def _rewritten(node: Any, changes: Mapping[str, str], content: Callable[[str], str | None]) -> Any:
    """`node` with its references changed, and with the url of an attachment where that is a resource of the input."""
    if isinstance(node, list):
        return [_rewritten(item, changes, content) for item in node]
    if not isinstance(node, dict):
        return node
    made = {}
    for key, value in node.items():
        if isinstance(value, str):
            if key == "reference":
                value = changes.get(value, value)
            elif key == "url" and (ref := content(value)) is not None and ref.startswith("Binary/"):
                value = ref
            made[key] = value
        else:
            made[key] = _rewritten(value, changes, content)
    return made


def _without_collisions(entries: list[_Found], dropped: Counter[str], notes: Counter[str]) -> list[Resource]:
    """One resource an id. Of two different ones with the same id the later lastUpdated stays, else the first read."""
    kept: dict[str, tuple[Resource, str]] = {}
    for entry in entries:
        try:
            resource = Resource.from_body(entry.body, where=entry.where)
        except ChartError:
            dropped["no valid id, or a resourceType that is no type's name"] += 1
            continue
        if entry.raw:
            resource = Resource(resource.type, resource.id, entry.raw, entry.body)
        meta = entry.body.get("meta")
        updated = str(meta.get("lastUpdated", "")) if isinstance(meta, dict) else ""
        before = kept.get(resource.ref)
        if before is None:
            kept[resource.ref] = (resource, updated)
        elif before[0].raw == resource.raw or before[0].body == resource.body:
            notes[f"{resource.type}: the same record again"] += 1
        else:
            dropped[f"{resource.type}: an id that another record has; the one updated last was kept"] += 1
            if updated > before[1]:
                kept[resource.ref] = (resource, updated)
    return [resource for resource, _ in kept.values()]


def _valid(resource: Resource, dropped: Counter[str]) -> bool:
    issues = check(resource.body)
    if issues:
        dropped[f"not valid R4: {_INDEX.sub('', issues[0].path)} ({issues[0].code})"] += 1
    return not issues


def _target_kind(target: str) -> str:
    relative = _RELATIVE.fullmatch(target)
    if relative:
        return relative[1]
    asked = _CONDITIONAL.fullmatch(target)
    if asked:
        return f"{asked[1]} by search"
    return "urn" if target.startswith("urn:") else "elsewhere"
