"""tasks.git under one writer: whole or not at all, once, by the right person, whatever happens to the process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tasks.errors import StoreError, UsageError, WorkbenchError
from tasks.store import WORKBENCH, Identity, Store, StoreSource, Submission, View
from tests.tasks.packages import TINY_ID, tiny_files

ROOT = Path(__file__).resolve().parents[2]
MARIA = Identity("Maria Reviewer", "maria@example.org")


def first() -> Submission:
    changes = {f"{TINY_ID}/{path}": data for path, data in tiny_files().items()}
    return Submission(WORKBENCH, "Import one task", changes, {"Task": TINY_ID})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(tmp_path / "tasks.git", [first()])


def note(review_id: str, text: str = "a finding", author: Identity = MARIA) -> Submission:
    path = f"{TINY_ID}/reviews/{review_id}.txt"
    return Submission(author, f"Review {review_id}", {path: text.encode()}, {"Task": TINY_ID, "Review-Id": review_id})


def once(store: Store, submission: Submission) -> tuple[str, ...]:
    def build(view: View) -> Sequence[Submission]:
        return [] if view.submitted(submission.trailers["Review-Id"], TINY_ID) else [submission]

    return store.submit(build)


def test_a_package_comes_back_as_it_went_in(store: Store) -> None:
    source = StoreSource(store)
    assert source.list() == [TINY_ID]
    assert dict(source.load(TINY_ID).files) == tiny_files()


def test_a_commit_has_the_person_as_author_and_the_workbench_as_committer(store: Store) -> None:
    (hash,) = once(store, note("r-1"))
    said = git(store, "log", "-1", "--format=%an <%ae>|%cn <%ce>|%s|%(trailers:only,unfold)", hash)
    assert said.strip().split("|") == [
        "Maria Reviewer <maria@example.org>",
        "PhysicianBench Workbench <workbench@localhost>",
        "Review r-1",
        f"Task: {TINY_ID}\nReview-Id: r-1",
    ]
    entry = store.history(TINY_ID)[0]
    assert (entry.author, entry.trailers["Review-Id"], entry.hash) == (MARIA, "r-1", hash)


def test_an_old_commit_reads_as_it_was(store: Store) -> None:
    before = store.head()
    changed = Submission(MARIA, "Rewrite", {f"{TINY_ID}/instruction.md": b"New text.\n"})
    store.submit(lambda view: [changed])
    with store.at(before) as view:
        assert view.read(f"{TINY_ID}/instruction.md") == tiny_files()["instruction.md"]
    with store.at() as view:
        assert view.read(f"{TINY_ID}/instruction.md") == b"New text.\n"
        assert view.read(f"{TINY_ID}/nothing.md") is None


def test_a_removed_file_is_gone_and_its_neighbours_stay(store: Store) -> None:
    once(store, note("r-1"))
    store.submit(lambda view: [Submission(MARIA, "Remove", {f"{TINY_ID}/reviews/r-1.txt": None})])
    with store.at() as view:
        assert sorted(view.files(TINY_ID)) == sorted(tiny_files())


def test_the_same_submission_twice_is_one(store: Store) -> None:
    assert once(store, note("r-1"))
    assert once(store, note("r-1")) == ()
    assert once(store, note("r-10")), "another id that merely begins alike is another submission"
    assert once(store, note("r-100"))
    assert once(store, note("s-100"))
    assert once(store, note("s-10")), "and so is one that another merely goes on from"


def test_several_commits_land_in_one_move_of_the_branch(store: Store) -> None:
    other = Identity("Noah Reviewer", "noah@example.org")
    hashes = store.submit(lambda view: [note("a"), note("b", author=other)])
    assert [entry.hash for entry in store.history(limit=2)] == list(reversed(hashes))
    assert git(store, "reflog", "show", "--format=%H", "refs/heads/main").split()[0] == hashes[-1]
    assert hashes[0] not in git(store, "reflog", "show", "--format=%H", "refs/heads/main").split()


def test_a_sealed_submission_keeps_the_date_at_which_it_was_made(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2001-01-01T00:00:00Z")
    at = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    once(store, replace(note("r-1"), at=at))
    once(store, note("r-2"))
    newest, earlier = store.history(limit=2)
    assert earlier.at == at
    assert newest.at.year > 2001, "the caller's shell does not date a commit"


def test_what_keeps_the_commit_graph_from_being_written_is_no_fault_of_a_submission(store: Store) -> None:
    lock = store.path / "objects" / "info" / "commit-graphs"
    lock.mkdir(parents=True, exist_ok=True)
    (lock / "commit-graph-chain.lock").touch()
    (store.path / "objects" / "info" / "commit-graph.lock").touch()
    store.maintain()
    assert once(store, note("r-1"))


def test_a_build_that_refuses_leaves_nothing(store: Store) -> None:
    head = store.head()

    def refuse(view: View) -> Sequence[Submission]:
        raise UsageError("not now")

    with pytest.raises(UsageError, match="not now"):
        store.submit(refuse)
    assert store.head() == head


def test_a_foreign_move_of_the_branch_is_seen_and_built_upon(store: Store) -> None:
    seen: list[str] = []

    def build(view: View) -> Sequence[Submission]:
        if not seen:
            tree = git(store, "rev-parse", "main^{tree}").strip()
            foreign = git(store, "commit-tree", tree, "-p", view.at, "-m", "by another tool").strip()
            git(store, "update-ref", "refs/heads/main", foreign)
        seen.append(view.at)
        return [note("r-1")]

    store.submit(build)
    assert len(seen) == 2
    assert [entry.subject for entry in store.history(limit=2)] == ["Review r-1", "by another tool"]


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../x", f"{TINY_ID}/../other/x", f"{TINY_ID}/.git/config", f"{TINY_ID}", f"{TINY_ID}/a\nb", "X/y"],
)
def test_a_path_outside_the_packages_is_refused(store: Store, path: str) -> None:
    head = store.head()
    with pytest.raises(StoreError):
        store.submit(lambda view: [Submission(MARIA, "Escape", {path: b"x"})])
    assert store.head() == head


def test_a_name_cannot_forge_a_commit_header(store: Store) -> None:
    nasty = Identity("Eve <root@x>\nparent 000", "e@x\n\nBody")
    once(store, note("r-1", author=nasty))
    assert store.check() == []
    assert store.history(limit=1)[0].author.name == "Eve  root@x  parent 000"


@pytest.mark.parametrize("name", ["main", "HEAD", "--all", "0" * 39, "zz" * 20])
def test_a_revision_is_a_full_hash_only(store: Store, name: str) -> None:
    with pytest.raises(WorkbenchError), store.at(name):
        pass


def test_pushes_are_refused_and_clones_work(store: Store, tmp_path: Path) -> None:
    for source in (str(store.path), store.path.as_uri()):
        clone = tmp_path / f"clone-{len(source)}-{source[:4].strip('/:')}"
        run("git", "clone", "-q", source, str(clone))
        (clone / TINY_ID / "instruction.md").write_text("Pushed past every review.\n")
        run("git", "-C", str(clone), "-c", "user.name=E", "-c", "user.email=e@x", "commit", "-qam", "bypass")
        pushed = subprocess.run(
            ["git", "-C", str(clone), "push", "origin", "HEAD:main"], capture_output=True, text=True, check=False
        )
        assert pushed.returncode != 0
        assert "takes no pushes" in pushed.stderr
    assert len(store.history()) == 1


def test_the_machines_git_settings_do_not_count(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    hook = hooks / "reference-transaction"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    config = tmp_path / "gitconfig"
    config.write_text(f"[user]\nname = Machine\nemail = m@x\n[commit]\ngpgsign = true\n[core]\nhooksPath = {hooks}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere.git"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody Else")
    assert once(store, note("r-1"))
    assert store.history(limit=1)[0].author == MARIA
    assert not (tmp_path / "elsewhere.git").exists()


def test_a_release_tag_is_annotated_and_never_moves(store: Store) -> None:
    at = store.head()
    store.tag(f"release/{TINY_ID}/1.0.0", at, "Released by the lead.", by=MARIA)
    store.tag(f"release/{TINY_ID}/1.0.0", at, "Again.", by=MARIA)
    once(store, note("r-1"))
    with pytest.raises(StoreError, match="never moves"):
        store.tag(f"release/{TINY_ID}/1.0.0", store.head(), "Moved.", by=MARIA)
    assert store.tags() == {f"release/{TINY_ID}/1.0.0": at}
    with pytest.raises(UsageError):
        store.tag("../../heads/main", at, "x", by=MARIA)


def test_a_missing_repository_is_one_message(store: Store, tmp_path: Path) -> None:
    store.path.rename(tmp_path / "moved.git")
    with pytest.raises(StoreError, match="not there"):
        once(store, note("r-1"))
    with pytest.raises(StoreError, match="not there"):
        store.head()
    assert not store.path.exists()


def test_two_first_starts_at_once_leave_one_repository(tmp_path: Path) -> None:
    path = tmp_path / "tasks.git"
    threads = [threading.Thread(target=Store.create, args=(path, [first()])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Store(path).history()) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["tasks.git"]


def test_threads_that_submit_at_once_all_land_once(store: Store) -> None:
    failures: list[Exception] = []

    def work(worker: int) -> None:
        try:
            for n in range(15):
                once(store, note(f"t{worker}-{n}"))
                once(store, note(f"t{worker}-{n}"))
        except Exception as failure:  # noqa: BLE001 (whatever it is, the test must show it)
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(e.trailers["Review-Id"] for e in store.history() if "Review-Id" in e.trailers) == sorted(
        f"t{worker}-{n}" for worker in range(8) for n in range(15)
    )
    assert store.check() == []


WRITER = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from tasks.store import Store
    from tests.tasks.test_store import note, once
    store, name, count = Store(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3])
    print("ready", flush=True)
    for n in range(count):
        once(store, note(f"{name}-{n}"))
        print(n, flush=True)
    """
)


def writer(store: Store, name: str, count: int) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(store.path), name, str(count)],
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    )


def test_processes_that_submit_at_once_all_land(store: Store) -> None:
    workers = [writer(store, f"p{n}", 15) for n in range(4)]
    for worker in workers:
        worker.communicate(timeout=240)
        assert worker.returncode == 0
    assert len([e for e in store.history() if "Review-Id" in e.trailers]) == 60
    assert store.check() == []


def killed(store: Store, rounds: int) -> Iterator[tuple[int, int]]:
    """(submissions that the writer saw land, submissions in the repository) for each killed writer."""
    for round in range(rounds):
        worker = writer(store, f"k{round}", 50)
        assert worker.stdout
        assert worker.stdout.readline() == "ready\n"
        seen = 0
        # A different moment each time: after so many landed submissions, plus a part of the next.
        for _ in range(round % 3):
            worker.stdout.readline()
            seen += 1
        threading.Event().wait(0.004 * (round % 11))
        worker.send_signal(signal.SIGKILL)
        rest, _ = worker.communicate()
        seen += len(rest.split())
        there = [e for e in store.history() if e.trailers.get("Review-Id", "").startswith(f"k{round}-")]
        yield seen, len(there)


def test_a_killed_writer_leaves_a_sound_repository(store: Store) -> None:
    for seen, there in killed(store, 6):
        assert seen <= there <= seen + 1
    assert store.check() == []
    assert once(store, note("after"))


@pytest.mark.soak
def test_a_hundred_killed_writers(store: Store) -> None:
    for seen, there in killed(store, 100):
        assert seen <= there <= seen + 1
    assert store.check() == []


@pytest.mark.skipif(os.geteuid() == 0 and not Path("/dev/full").exists(), reason="needs a way to make a write fail")
def test_a_full_disk_is_one_message_and_nothing_is_written(store: Store, tmp_path: Path) -> None:
    head = store.head()
    # RLIMIT_FSIZE makes the kernel refuse to grow a file, as a full disk does, for root too.
    code = textwrap.dedent(
        f"""
        import resource, signal, sys
        from pathlib import Path
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        from tasks.errors import StoreError
        from tasks.store import Store
        from tests.tasks.test_store import note, once
        import random
        big = "".join(chr(random.randrange(33, 126)) for _ in range(500_000))
        try:
            once(Store(Path({str(store.path)!r})), note("big", big))
        except StoreError as failure:
            print(failure)
            sys.exit(7)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 7, done.stderr
    assert "nothing was written" in done.stdout.lower()
    assert store.head() == head
    assert store.check() == []


def git(store: Store, *arguments: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    people = {f"GIT_{role}_{part}": "x@x" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    return subprocess.run(
        ["git", "-C", str(store.path), *arguments],
        env=environment | people,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


# ---- a damaged repository -------------------------------------------------------------------------------------------


def _loose(store: Store, hash: str) -> Path:
    path = store.path / "objects" / hash[:2] / hash[2:]
    path.chmod(0o644)
    return path


@pytest.mark.parametrize("damage", ["garbage", "cut", "gone"])
def test_a_damaged_file_is_one_message_without_its_content(store: Store, damage: str) -> None:
    with store.at() as view:
        path = _loose(store, view.paths(TINY_ID)[f"{TINY_ID}/instruction.md"])
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(b"not zlib" if damage == "garbage" else path.read_bytes()[:30])
    with pytest.raises(StoreError, match="damaged or cannot be read") as said, store.at() as view:
        view.read(f"{TINY_ID}/instruction.md")
    assert "git fsck" in str(said.value)
    assert "e-consult" not in str(said.value)


def test_a_damaged_commit_is_one_message_for_whoever_reads_the_history(store: Store) -> None:
    first_commit = store.head()
    (second,) = once(store, note("r-1"))
    once(store, note("r-2"))
    _loose(store, second).write_bytes(b"not zlib")
    # The commit graph holds copies of what it indexes.
    shutil.rmtree(store.path / "objects" / "info" / "commit-graphs", ignore_errors=True)
    (store.path / "objects" / "info" / "commit-graph").unlink(missing_ok=True)
    for read in (lambda: store.history(TINY_ID), lambda: store.diff(first_commit, second, TINY_ID)):
        with pytest.raises(StoreError):
            read()
