"""Times of the review domain on a chart of 30,720 resources, beside `git diff` on the same bytes in the same run."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from authoring.diffs import diff
from authoring.edits import ResourceEdit
from authoring.proposals import Proposal, ProposedEdit, prepare
from tasks.package import SUITE
from tasks.review import events as ev
from tasks.review.checklist import DIMENSIONS
from tasks.review.signoff import requirements, turns
from tasks.review.state import ReviewState, fold
from tasks.store import WORKBENCH, Store, Submission

RESOURCES, EDITS, FINDINGS, COMMITS = 30_720, 200, 1_000, 60
STATUS_MS, DIFF_S = 200, 2.0
START = datetime(2026, 3, 1, 9, tzinfo=UTC)


def big_package() -> tuple[str, dict[str, bytes]]:
    """(id, files) of the first bundled task with a chart of RESOURCES resources."""
    id = SUITE.list()[0]
    files = dict(SUITE.files(id))
    there = sum(data.count(b"\n") for path, data in files.items() if path.startswith("chart/"))
    path = "chart/Observation.ndjson"
    patient = json.loads(files["chart/Patient.ndjson"].split(b"\n")[0])["id"]
    more = [
        json.dumps(
            {
                "resourceType": "Observation", "id": f"zz-{n:06d}", "status": "final",
                "code": {"coding": [{"system": "http://loinc.org", "code": "2823-3", "display": "Potassium"}]},
                "subject": {"reference": f"Patient/{patient}"},
                "effectiveDateTime": (START - timedelta(hours=n)).isoformat(),
                "valueQuantity": {"value": 3.5 + n % 20 / 10, "unit": "mmol/L"},
                "note": [{"text": "Specimen without hemolysis; drawn from the left arm, fasting."}],
            },
            separators=(",", ":"),
        )
        for n in range(RESOURCES - there)
    ]  # fmt: skip
    files[path] = files[path] + ("\n".join(more) + "\n").encode()
    return id, files


def edits(files: dict[str, bytes]) -> list[ResourceEdit]:
    """EDITS resource edits spread over the chart."""
    lines = files["chart/Observation.ndjson"].split(b"\n")
    bodies = [json.loads(line) for line in lines if b'"id":"zz-' in line]
    out = []
    for body in bodies[:: len(bodies) // EDITS][:EDITS]:
        value = body["valueQuantity"]["value"]
        where = "/valueQuantity/value"
        operations = ({"op": "test", "path": where, "value": value}, {"op": "replace", "path": where, "value": 9})
        out.append(ResourceEdit(ref=f"Observation/{body['id']}", operations=operations))
    return out


def history(task: str, files: dict[str, bytes]) -> list[ev.Event]:
    """A long review: FINDINGS findings of two reviewers."""
    package = ev.package_hash(files)

    def common(actor: str, role: str, round: int) -> dict[str, object]:
        return {"submission": ev.new_id(), "task": task, "actor": actor, "role": role, "at": START, "round": round}

    finding = {"dimension": DIMENSIONS[0], "anchor": {"kind": "task"}, "weight": "note", "text": "Something. " * 20}
    out: list[ev.Event] = [
        ev.Imported.model_validate(common("workbench", "workbench", 0) | {"package": package, "version": "1"}),
        ev.RoundOpened.model_validate(common("lead", "lead", 1) | {"package": package, "reviewers": ["ann", "bob"]}),
    ]
    for person in ("ann", "bob"):
        out.append(ev.Assigned.model_validate(common("lead", "lead", 1) | {"person": person, "as_role": "reviewer"}))
        verdicts = [{"dimension": name, "verdict": "needs change"} for name in DIMENSIONS]
        found = [finding | {"id": ev.new_id()} for _ in range(FINDINGS // 2)]
        more = {"package": package, "checklist": "1", "verdicts": verdicts, "findings": found, "confidence": "sure"}
        out.append(ev.ReviewSubmitted.model_validate(common(person, "reviewer", 1) | more))
    return out


def best(what: Callable[[], object], times: int = 3) -> float:
    """The shortest of several runs, in seconds: what the machine does besides is not ours."""
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        what()
        found.append(time.perf_counter() - begun)
    return min(found)


def main() -> None:
    """Print each figure beside its limit and beside a real comparison."""
    task, files = big_package()
    events = history(task, files)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        first = {f"{task}/{path}": data for path, data in files.items()}
        first[f"{task}/{ev.FILE}"] = ev.dump_events(events)
        more = [
            Submission(WORKBENCH, f"Note {n}", {f"{task}/CHANGELOG.md": f"# Changes\n\n## {n}\n".encode()})
            for n in range(COMMITS)
        ]
        store = Store.create(root / "tasks.git", [Submission(WORKBENCH, "Import", first), *more])

        def status() -> ReviewState:
            with store.at() as view:
                state = fold(task, ev.parse_events(view.read(f"{task}/{ev.FILE}") or b""))
            requirements(state)
            turns(state)
            return state

        seconds = best(status, times=10)
        _line(f"status, {FINDINGS} findings", seconds * 1000, "ms", STATUS_MS)

        proposal = Proposal(
            task=task, package=ev.package_hash(files), made_by="some/model", by_hand=False, at=START,
            edits=tuple(ProposedEdit(edit=one) for one in edits(files)),
        )  # fmt: skip
        _line(f"prepare {EDITS} edits", best(lambda: prepare(files, proposal)), "s", None)
        after = prepare(files, proposal).after
        ours = best(lambda: diff(files, after))
        _line(f"diff of {EDITS} edits, checked", ours, "s", DIFF_S)
        for name, package in (("old", files), ("new", after)):
            for path, data in package.items():
                (root / name / path).parent.mkdir(parents=True, exist_ok=True)
                (root / name / path).write_bytes(data)
        command = ["git", "diff", "--no-index", "--no-color", "old", "new"]
        theirs = best(lambda: subprocess.run(command, cwd=root, capture_output=True, check=False))
        print(f"  git diff of the same bytes, unchecked{theirs:>12.2f} s")
        print(f"  {RESOURCES} resources, {sum(map(len, files.values())) / 1e6:.1f} MB")


def _line(what: str, value: float, unit: str, limit: float | None) -> None:
    told = "" if limit is None else f"   limit {limit:g} {unit}: {'kept' if value <= limit else 'MISSED'}"
    print(f"  {what:<36}{value:>9.2f} {unit}{told}")


if __name__ == "__main__":
    main()
