"""tasks.git: the bare repository of task packages, and the only writer of its one branch (design 11).

Every submission is one commit: author the person, committer the workbench, trailers that make the history queryable.
A write builds its commits on the head it saw and moves the branch by compare-and-swap under one file lock, so that it
is there whole or not at all, whatever kills the process. Nothing is cached between operations: each opens the
repository anew, since a shared one gives wrong data across threads.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import filelock
import git

from tasks.errors import StoreError, UsageError
from tasks.manifest import TASK_ID
from tasks.package import Task, load

BRANCH = "refs/heads/main"
_HASH = re.compile(r"^[0-9a-f]{40}$")
_TRAILER = re.compile(r"^[A-Z][A-Za-z-]{1,30}$")
_TAG = re.compile(r"^[a-z0-9][a-z0-9./-]{0,120}$")
#: How often a write is built anew on a head that moved, and how long it waits for the lock, in seconds.
_ATTEMPTS, _LOCK_SECONDS = 8, 60.0

_HOOK = """#!/bin/sh
# The workbench is this repository's only writer: a push would pass by reviews, gates and decisions.
echo "This repository takes no pushes. Clone it, edit, and run: python -m authoring propose TASK --from-dir DIR" >&2
exit 1
"""


@dataclass(frozen=True)
class Identity:
    """Who a commit is by."""

    name: str
    email: str


WORKBENCH = Identity("PhysicianBench Workbench", "workbench@localhost")


@dataclass(frozen=True)
class Submission:
    """One commit to be: the changed files (None = removed), by whom, and what it says.

    `subject` is one line in the field's words; `trailers` (Task, Round, Review-Id, Verdict, Change-Id, Base, ...) come
    last, one line a value. Paths are relative to the repository: "<task-id>/instruction.md". `at` is the author's
    date where that was earlier than the commit, as with a submission that was sealed; None = now.
    """

    author: Identity
    subject: str
    changes: Mapping[str, bytes | None]
    trailers: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    body: str = ""
    at: datetime | None = None


@dataclass(frozen=True)
class Commit:
    """One entry of the history. `at` is the author's date; several values of one trailer are joined by a space."""

    hash: str
    author: Identity
    at: datetime
    subject: str
    trailers: Mapping[str, str]


class View:
    """The repository as it stood at one commit. Valid only inside the call that hands it out.

    Raises StoreError where an object that is asked for is damaged or missing.
    """

    def __init__(self, repo: git.Repo, at: str) -> None:
        self._repo, self.at = repo, at
        self._trees: dict[str, dict[str, str]] = {}

    def tasks(self) -> list[str]:
        """Ids of the packages, sorted."""
        names = _read(self._repo, "ls-tree", "-d", "-z", "--name-only", self.at).split("\0")
        return sorted(name for name in names if name)

    def paths(self, prefix: str = "") -> dict[str, str]:
        """{path: blob hash} of every file below `prefix`, a task's id ("" = all); none below what is no task's id."""
        if prefix and not re.match(TASK_ID, prefix):
            return {}
        if prefix and prefix not in self._trees and "" in self._trees:
            # Of the whole listing, where that is at hand: no git process for each task of a list.
            below = f"{prefix}/"
            return {path: blob for path, blob in self._trees[""].items() if path.startswith(below)}
        if prefix not in self._trees:
            listed = _read(self._repo, "ls-tree", "-r", "-z", self.at, *(["--", f"{prefix}/"] if prefix else []))
            rows = (row.partition("\t") for row in listed.split("\0") if row)
            self._trees[prefix] = {path: meta.split(" ")[2] for meta, _, path in rows}
        return self._trees[prefix]

    def read(self, path: str) -> bytes | None:
        """The bytes of one file, or None where it is not there."""
        blob = self.paths(path.split("/")[0]).get(path)
        return None if blob is None else self.blob(blob)

    def blob(self, hash: str) -> bytes:
        """The bytes of a blob."""
        with _reading(self._repo):
            stream = self._repo.odb.stream(bytes.fromhex(hash))
            data = cast("bytes", stream.read())
            if len(data) != stream.size:
                raise OSError("an object is cut short")
            return data

    def files(self, task: str) -> dict[str, bytes]:
        """Every file of one package, {path inside it: bytes}."""
        return {path[len(task) + 1 :]: self.blob(blob) for path, blob in self.paths(task).items()}

    def submitted(self, review_id: str, task: str) -> str | None:
        """The commit that carries this Review-Id among those of a task, or None: the same submission twice is one."""
        # grep finds commits that say it anywhere, and ids that merely begin alike; the trailer itself decides.
        said = _read(
            self._repo, "log", "--format=%H%x00%(trailers:key=Review-Id,valueonly,separator=%x00)%x1e",
            "--fixed-strings", f"--grep=Review-Id: {review_id}", self.at, "--", f"{task}/",
        )  # fmt: skip
        for row in said.split("\x1e"):
            hash, *ids = row.strip("\n").split("\0")
            if review_id in ids:
                return hash
        return None


class Store:
    """tasks.git. Every method opens it anew; any number of threads and processes may hold a Store at once.

    Raises StoreError where the repository is missing, cannot be read or written, or stays busy.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path, first: Sequence[Submission]) -> Store:
        """The repository at `path`, made with `first` as its first commits unless it is already there.

        It is built beside and renamed, so that two first starts at once leave one repository, and it is never half.
        """
        store = cls(path)
        if path.exists():
            return store
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
        except OSError as failure:
            raise _disk(path, failure) from None
        try:
            with _faults(path):
                repo = git.Repo.init(beside, bare=True, initial_branch="main")
                try:
                    repo.git.update_environment(**_clean(beside))
                    with repo.config_writer() as config:
                        config.set_value("receive", "denyNonFastForwards", "true")
                        config.set_value("receive", "denyDeletes", "true")
                        config.set_value("gc", "auto", "0")
                    _write_hook(beside / "hooks" / "pre-receive")
                    head = ""
                    for submission in first:
                        head = _commit(repo, head, submission)
                    if head:
                        _git(repo, "update-ref", BRANCH, head)
                finally:
                    repo.close()
            try:
                beside.rename(path)
            except OSError:
                if not path.exists():
                    raise
        except OSError as failure:
            raise _disk(path, failure) from None
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        store.maintain()
        return store

    @contextmanager
    def at(self, commit: str | None = None) -> Iterator[View]:
        """The repository at a commit (None = the head)."""
        with self._open() as repo:
            yield View(repo, self._revision(repo, commit))

    def head(self) -> str:
        """The hash of the newest commit."""
        with self._open() as repo:
            return self._revision(repo, None)

    def submit(self, build: Callable[[View], Sequence[Submission]]) -> tuple[str, ...]:
        """Commit what `build` makes of the current state, all in one move of the branch; the new hashes, oldest first.

        `build` decides on the head that the commits will stand on: it validates there and raises to refuse, and gives
        nothing where nothing is to be done. It is called again if the head moved meanwhile.
        """
        with self._lock():
            for _ in range(_ATTEMPTS):
                with self._open() as repo:
                    head = self._revision(repo, None)
                    submissions = build(View(repo, head))
                    if not submissions:
                        return ()
                    hashes: list[str] = []
                    with _faults(self.path):
                        for submission in submissions:
                            hashes.append(_commit(repo, hashes[-1] if hashes else head, submission))
                        if self._move(repo, hashes[-1], head):
                            break
            else:
                raise StoreError(
                    f"the branch moved {_ATTEMPTS} times while this was being written; nothing was.",
                    where=str(self.path),
                    remedy="Something besides the workbench writes to it. Stop that and try again.",
                )
        # One write in 256 refreshes what makes `git log -- task` fast; a counter would need a place of its own.
        if hashes[-1].startswith("00"):
            self.maintain()
        return tuple(hashes)

    def tag(self, name: str, commit: str, message: str, *, by: Identity) -> None:
        """An annotated tag (a release, a sign-off). The same tag on the same commit twice is one.

        Raises StoreError where the name stands for another commit.
        """
        if not _TAG.match(name) or ".." in name or name.endswith((".lock", "/", ".")):
            raise UsageError(f"{name!r} is not a name for a release", remedy="Use lower-case letters, digits, / . -")
        with self._lock(), self._open() as repo, _faults(self.path):
            commit = self._revision(repo, commit)
            there = _git(repo, "for-each-ref", "--format=%(*objectname)", f"refs/tags/{name}").strip()
            if there == commit:
                return
            if there:
                raise StoreError(f"{name} is already the name of commit {there[:10]}; a release never moves.")
            with _people(by, WORKBENCH) as people, repo.git.custom_environment(**people):
                _git(repo, "tag", "-a", "--no-sign", "-F", "-", name, commit, stdin=message.encode())

    def tags(self) -> dict[str, str]:
        """{tag: commit}, oldest first."""
        with self._open() as repo:
            said = _read(
                repo, "for-each-ref", "--sort=creatordate", "--format=%(refname:strip=2)%00%(*objectname)", "refs/tags"
            )
            return dict(cast("tuple[str, str]", tuple(row.split("\0"))) for row in said.splitlines() if row)

    def history(self, task: str | None = None, *, limit: int = 1000, at: str | None = None) -> list[Commit]:
        """Commits of one task, or of all, newest first."""
        with self._open() as repo:
            where = ["--", f"{task}/"] if task else []
            fields = "%H%x00%an%x00%ae%x00%aI%x00%s%x00%(trailers:only,unfold)%x1e"
            said = _read(repo, "log", f"--format={fields}", f"-{limit}", self._revision(repo, at), *where)
        entries = []
        for row in said.split("\x1e"):
            if not row.strip():
                continue
            hash, name, email, at_, subject, trailers = row.lstrip("\n").split("\0")
            said_there: dict[str, str] = {}
            for key, colon, value in (line.partition(": ") for line in trailers.strip().split("\n")):
                if colon:
                    said_there[key] = f"{said_there[key]} {value}" if key in said_there else value
            entries.append(Commit(hash, Identity(name, email), datetime.fromisoformat(at_), subject, said_there))
        return entries

    def diff(self, old: str, new: str, task: str) -> str:
        """What changed in one task between two commits, as git shows it, reviews/ left out."""
        with self._open() as repo:
            return _read(
                repo, "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames",
                self._revision(repo, old), self._revision(repo, new), "--", f"{task}/", f":(exclude){task}/reviews/",
            )  # fmt: skip

    def maintain(self) -> None:
        """Refresh the commit graph with its changed paths: a task's log over 20,000 commits in milliseconds.

        It only makes reading faster, so that whatever keeps it from being written is no fault of what was.
        """
        with suppress(StoreError, git.GitCommandError), self._lock(), self._open() as repo:
            _git(repo, "commit-graph", "write", "--reachable", "--changed-paths")

    def check(self) -> list[str]:
        """What `git fsck` finds wrong; empty when the repository is sound."""
        with self._open() as repo:
            try:
                said = _git(repo, "fsck", "--full", "--strict", "--no-dangling", "--no-progress")
            except git.GitCommandError as failure:
                said = f"{failure.stdout}\n{failure.stderr}"
        return [line for line in said.splitlines() if line.strip()]

    @contextmanager
    def _open(self) -> Iterator[git.Repo]:
        try:
            repo = git.Repo(self.path, search_parent_directories=False)
        except (git.NoSuchPathError, git.InvalidGitRepositoryError):
            raise StoreError(
                "the task repository is not there, or is no repository.",
                where=str(self.path),
                remedy="Put it back, or set WORKBENCH_WORKSPACE to the workspace that holds it.",
            ) from None
        try:
            with repo.git.custom_environment(**_clean(self.path)):
                yield repo
        finally:
            repo.close()

    def _revision(self, repo: git.Repo, commit: str | None) -> str:
        if commit is not None and not _HASH.match(commit):
            raise UsageError(f"{commit!r} is not a full commit hash", remedy="`tasks history` lists them.")
        try:
            return _git(repo, "rev-parse", "--verify", "--quiet", f"{commit or BRANCH}^{{commit}}").strip()
        except git.GitCommandError:
            what = f"commit {commit} is not in the repository" if commit else "the repository has no commit yet"
            raise StoreError(what, where=str(self.path)) from None

    def _move(self, repo: git.Repo, new: str, old: str) -> bool:
        try:
            _git(repo, "update-ref", "--create-reflog", "-m", "workbench", BRANCH, new, old)
        except git.GitCommandError as failure:
            if self._revision(repo, None) != old:
                return False
            raise failure
        return True

    @contextmanager
    def _lock(self) -> Iterator[None]:
        if not self.path.is_dir():
            with self._open():
                pass
        lock = filelock.FileLock(self.path / "workbench.lock", timeout=_LOCK_SECONDS)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise StoreError(
                f"another writer has held the task repository for {_LOCK_SECONDS:.0f} s; nothing was written.",
                where=str(self.path),
                remedy="Try again; if it stays so, look for a stuck workbench process.",
            ) from None
        except OSError as failure:
            raise _disk(self.path, failure) from None
        try:
            yield
        finally:
            lock.release()


class StoreSource:
    """A TaskSource over the repository at one commit (None = whatever is newest at each call)."""

    def __init__(self, store: Store, at: str | None = None) -> None:
        self.store, self._at = store, at

    def list(self) -> list[str]:
        """Ids of the packages, sorted."""
        with self.store.at(self._at) as view:
            return view.tasks()

    def load(self, id: str, at: str | None = None) -> Task:
        """A package. Raises UsageError where it is not there, PackageError where it is broken."""
        if not re.match(TASK_ID, id):
            raise UsageError(f"{id!r} is not a task id")
        with self.store.at(at or self._at) as view:
            if id not in view.tasks():
                raise UsageError(f"no task {id!r} at commit {view.at[:10]}", remedy="`tasks list` shows them.")
            return load(view.files(id), where=id)


def _clean(path: Path) -> dict[str, str]:
    """The environment of every git command: neither the machine's settings nor variables of the caller's shell decide
    what a commit is, where it goes, or whether a hook runs."""
    return {
        "GIT_DIR": str(path),
        "GIT_OBJECT_DIRECTORY": str(path / "objects"),
        "GIT_NAMESPACE": "",
        "GIT_CONFIG_COUNT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }


_OPTIONS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsync=all", "-c", "commit.gpgSign=false", "-c", "gc.auto=0")


def _git(repo: git.Repo, *arguments: str, stdin: bytes | None = None) -> str:
    """One git command in the repository; its output as text."""
    command = [git.Git.GIT_PYTHON_GIT_EXECUTABLE or "git", *_OPTIONS, *arguments]
    with tempfile.TemporaryFile() as given:
        if stdin is not None:
            given.write(stdin)
            given.seek(0)
        out: Any = repo.git.execute(command, istream=given, stdout_as_string=False, strip_newline_in_stdout=False)
    return cast("bytes", out).decode("utf-8", "surrogateescape")


def _read(repo: git.Repo, *arguments: str) -> str:
    """The output of a git command that changes nothing. Raises StoreError where the repository cannot be read."""
    with _reading(repo):
        return _git(repo, *arguments)


@contextmanager
def _reading(repo: git.Repo) -> Iterator[None]:
    """What cannot be read as one message, without a file's content: a damaged or missing object, a disk that fails."""
    try:
        yield
    except (git.CommandError, git.ODBError, zlib.error, OSError, ValueError) as failure:
        what = _fatal(str(failure.stderr)) if isinstance(failure, git.CommandError) else type(failure).__name__
        raise StoreError(
            f"the task repository is damaged or cannot be read: {what[:200]}",
            where=str(repo.git_dir),
            remedy="Nothing was changed. See what is wrong with: git fsck --full; put it back from a copy.",
        ) from None


def _fatal(said: str) -> str:
    """The first line of git's words that tells the fault."""
    return next((line.strip() for line in said.splitlines() if "fatal" in line or "error" in line), "")


def _commit(repo: git.Repo, parent: str, submission: Submission) -> str:
    """A commit object on `parent` ("" = none). Nothing points to it yet."""
    rows = []
    for path, data in sorted(submission.changes.items()):
        if not _is_package_path(path):
            raise StoreError(f"{path!r} is no path of a task package; nothing was written.")
        if data is None:
            rows.append(f"0 {'0' * 40}\t{path}")
        else:
            blob = _git(repo, "hash-object", "-w", "--stdin", stdin=data).strip()
            rows.append(f"100644 {blob}\t{path}")
    with (
        tempfile.TemporaryDirectory(prefix="workbench-index-") as folder,
        repo.git.custom_environment(GIT_INDEX_FILE=str(Path(folder) / "index")),
    ):
        if parent:
            _git(repo, "read-tree", parent)
        if rows:
            _git(repo, "update-index", "-z", "--index-info", stdin="\0".join([*rows, ""]).encode())
        tree = _git(repo, "write-tree").strip()
    message = _message(submission)
    # Empty = now, whatever the caller's shell says.
    dated = {
        "GIT_AUTHOR_DATE": submission.at.isoformat(timespec="seconds") if submission.at else "",
        "GIT_COMMITTER_DATE": "",
    }
    with _people(submission.author, WORKBENCH) as people, repo.git.custom_environment(**people, **dated):
        parents = ["-p", parent] if parent else []
        return _git(repo, "commit-tree", tree, *parents, "-F", "-", stdin=message.encode()).strip()


def _message(submission: Submission) -> str:
    subject = " ".join(submission.subject.split()) or "(no subject)"
    lines = []
    for key, value in submission.trailers.items():
        if not _TRAILER.match(key):
            raise StoreError(f"{key!r} is no trailer; nothing was written.")
        values = [value] if isinstance(value, str) else value
        lines += [f"{key}: {' '.join(one.split())}" for one in values]
    return "\n\n".join(part for part in (subject, submission.body.strip(), "\n".join(lines)) if part) + "\n"


def _is_package_path(path: str) -> bool:
    head, slash, tail = path.partition("/")
    parts = tail.split("/")
    return bool(
        slash
        and re.match(TASK_ID, head)
        and all(part not in ("", ".", "..") and part.lower() != ".git" for part in parts)
        and not any(ord(letter) < 32 for letter in path)
    )


@contextmanager
def _people(author: Identity, committer: Identity) -> Iterator[dict[str, str]]:
    def plain(text: str) -> str:
        return re.sub(r"[<>\x00-\x1f\x7f]", " ", text).strip() or "unknown"

    yield {
        "GIT_AUTHOR_NAME": plain(author.name),
        "GIT_AUTHOR_EMAIL": plain(author.email),
        "GIT_COMMITTER_NAME": plain(committer.name),
        "GIT_COMMITTER_EMAIL": plain(committer.email),
    }


def _write_hook(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(_HOOK, encoding="utf-8")
    path.chmod(0o755)


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    """A git failure as one message; git's own words can hold file names but never file contents."""
    try:
        yield
    except git.GitCommandError as failure:
        said = str(failure.stderr).lower()
        for sign, what, remedy in _KNOWN:
            if sign in said:
                raise StoreError(f"{what}; nothing was written.", where=str(path), remedy=remedy) from None
        first = _fatal(str(failure.stderr))
        raise StoreError(f"git failed, nothing was written: {first[:200]}", where=str(path)) from None
    except OSError as failure:
        raise _disk(path, failure) from None


_KNOWN = (
    ("no space left", "the disk is full", "Free some space and try again."),
    ("read-only file system", "the disk is read-only", "Make it writable, or move the workspace."),
    ("permission denied", "the repository may not be written by this user", "Check its owner and permissions."),
    ("insufficient permission", "the repository may not be written by this user", "Check its owner and permissions."),
    ("unable to create temporary file", "the repository cannot be written", "Check the disk and its permissions."),
)


def _disk(path: Path, failure: OSError) -> StoreError:
    return StoreError(
        f"the task repository cannot be written: {failure.strerror}.", where=str(path), remedy="Nothing was written."
    )
