"""EHR sessions: opening one, and searching 20,000 Observations in process and over HTTP, beside scanning the JSON."""

from __future__ import annotations

import http.client
import json
import multiprocessing
import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from runtime import ehr
from tasks.fhir.chart import Chart

LOINC = "http://loinc.org"
#: Median and largest chart of the reference system, in resources.
SIZES = (616, 30_720)
OBSERVATIONS = 20_000
_CODES = [f"{1000 + n}-{n % 10}" for n in range(40)]
_CATEGORIES = ("laboratory", "laboratory", "laboratory", "vital-signs")

#: One code of 40 in a category, from a date on: 50 rows of some 270, newest first, with the exact total.
NARROW = (
    ("patient", "p"),
    ("category", "laboratory"),
    ("code", f"{LOINC}|{_CODES[1]}"),
    ("date", "ge2015-01-01"),
    ("_sort", "-date"),
    ("_count", "50"),
)
#: Three rows of four: what sorting and an exact total cost at their worst.
WIDE = tuple(pair for pair in NARROW if pair[0] != "code")


def synthetic(size: int) -> dict[str, bytes]:
    """A chart of `size` resources of one patient, two thirds Observations, the same every time."""
    chance = random.Random(size)
    observations = min(OBSERVATIONS, size * 2 // 3)
    patient = {"resourceType": "Patient", "id": "p", "gender": "female", "birthDate": "1950-05-05"}
    rows: dict[str, list[str]] = {"Patient": [json.dumps(patient)], "Observation": [], "Condition": []}
    for number in range(observations):
        code = _CODES[number % len(_CODES)]
        day = f"20{chance.randrange(10, 25):02}-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}"
        body = {
            "resourceType": "Observation",
            "id": f"o-{number:05}",
            "status": "final",
            "category": [
                {
                    "coding": [
                        {
                            "system": "http://terminology.hl7.org/CodeSystem/observation-category",
                            "code": _CATEGORIES[number // len(_CODES) % len(_CATEGORIES)],
                        }
                    ]
                }
            ],
            "code": {"coding": [{"system": LOINC, "code": code, "display": f"Analyte {code}"}], "text": code},
            "subject": {"reference": "Patient/p"},
            "effectiveDateTime": f"{day}T{chance.randrange(24):02}:{chance.randrange(60):02}:00Z",
            "valueQuantity": {
                "value": round(chance.uniform(1, 200), 1),
                "unit": "mg/dL",
                "system": "http://unitsofmeasure.org",
                "code": "mg/dL",
            },
        }
        rows["Observation"].append(json.dumps(body))
    for number in range(size - observations - 1):
        body = {
            "resourceType": "Condition",
            "id": f"c-{number:05}",
            "code": {"coding": [{"system": "http://hl7.org/fhir/sid/icd-10-cm", "code": f"E{number % 90:02}"}]},
            "subject": {"reference": "Patient/p"},
            "onsetDateTime": f"20{number % 25:02}-03",
        }
        rows["Condition"].append(json.dumps(body))
    return {f"{type}.ndjson": "".join(f"{line}\n" for line in lines).encode() for type, lines in rows.items()}


def timed(work: Callable[[], object], times: int) -> tuple[float, float]:
    """(p50, p95) of `times` runs of `work`, in milliseconds, after three runs that do not count."""
    for _ in range(min(3, times)):
        work()
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append((time.perf_counter() - began) * 1000)
    taken.sort()
    return taken[len(taken) // 2], taken[min(len(taken) - 1, int(len(taken) * 0.95))]


def scan(lines: list[bytes], codes: set[str]) -> tuple[list[dict[str, object]], int]:
    """What a search without an index does: read every line, keep what matches, sort, take 50."""
    kept = []
    for line in lines:
        body = json.loads(line)
        if (
            body["subject"]["reference"] == "Patient/p"
            and any(coding["code"] == "laboratory" for concept in body["category"] for coding in concept["coding"])
            and any(coding["system"] == LOINC and coding["code"] in codes for coding in body["code"]["coding"])
            and body["effectiveDateTime"] >= "2015-01-01"
        ):
            kept.append(body)
    kept.sort(key=lambda body: body["effectiveDateTime"], reverse=True)
    return kept[:50], len(kept)


def serve(cache: Path, pipe: Connection) -> None:
    """In a process of its own: serve the larger chart until the other end of the pipe says stop."""
    with ehr.open(Chart.open(synthetic(SIZES[-1]), cache=cache)) as session:
        pipe.send(session.base_url)
        pipe.recv()


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        opened = {}
        for size in SIZES:
            files = synthetic(size)
            began = time.perf_counter()
            chart = Chart.open(files, cache=cache)
            first = (time.perf_counter() - began) * 1000
            again = timed(partial(Chart.open, files, cache=cache), 20)
            session = timed(partial(_open_and_close, chart), 500)
            opened[size] = session[0]
            print(
                f"{size:>6} resources: indexed once {first:.0f} ms, from the cache {again[0]:.2f} ms; "
                f"a session opened and closed p50 {session[0]:.4f} ms, p95 {session[1]:.4f} ms (target 5)"
            )
        print(f"opening at {SIZES[1]} resources against {SIZES[0]}: {opened[SIZES[1]] / opened[SIZES[0]]:.1f} x")
        lines = files["Observation.ndjson"].splitlines()
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        server = context.Process(target=serve, args=(cache, there), daemon=True)
        server.start()
        try:
            base_url = here.recv()
            with ehr.open(chart) as own:
                for name, params, codes in (("narrow", NARROW, {_CODES[1]}), ("wide", WIDE, set(_CODES))):
                    _search(name, params, codes, lines, own, base_url)
        finally:
            here.send("stop")
            server.join(10)


def _open_and_close(chart: Chart) -> None:
    ehr.open(chart).close()


def _search(
    name: str,
    params: tuple[tuple[str, str], ...],
    codes: set[str],
    lines: list[bytes],
    session: ehr.Session,
    base_url: str,
) -> None:
    url = urlsplit(base_url)
    connection = http.client.HTTPConnection("127.0.0.1", url.port or 80)
    path = f"{url.path}/Observation?{urlencode(params)}"

    def over_http() -> bytes:
        connection.request("GET", path)
        return connection.getresponse().read()

    wanted, total = scan(lines, codes)
    page, bundle = session.search("Observation", params), json.loads(over_http())
    found = [row.body["effectiveDateTime"] for row in page.rows]
    if not page.total == bundle["total"] == total or found != [body["effectiveDateTime"] for body in wanted]:
        raise AssertionError("the search and the scan differ")
    inside = timed(partial(session.search, "Observation", params), 400)
    outside = timed(over_http, 400)
    scanned = timed(partial(scan, lines, codes), 5)
    connection.close()
    print(
        f"{name} search, 50 of {total} matches among {len(lines)} Observations, sorted, exact total:\n"
        f"    in process    p50 {inside[0]:7.2f}  p95 {inside[1]:7.2f} ms   {scanned[0] / inside[0]:5.0f} x the scan\n"
        f"    over HTTP     p50 {outside[0]:7.2f}  p95 {outside[1]:7.2f} ms   {scanned[0] / outside[0]:5.0f} x\n"
        f"    scan of JSON  p50 {scanned[0]:7.2f}  p95 {scanned[1]:7.2f} ms"
    )


if __name__ == "__main__":
    main()
