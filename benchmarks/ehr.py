"""EHR sessions: opening one, and searching 20,000 Observations in process and over HTTP, beside scanning the JSON."""

from __future__ import annotations

import http.client
import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, urlsplit

from runtime import ehr
from tasks.fhir.chart import Chart, Page

LOINC = "http://loinc.org"
#: Median and largest chart of the reference system, in resources.
SIZES = (616, 30_720)
OBSERVATIONS = 20_000
_CODES = [f"{1000 + n}-{n % 10}" for n in range(40)]
_CATEGORIES = ("laboratory", "laboratory", "laboratory", "vital-signs")

#: One code of 40 in a category, from a date on: 50 rows of some 350, newest first, with the exact total.
NARROW = (
    ("patient", "p"),
    ("category", "laboratory"),
    ("code", f"{LOINC}|{_CODES[1]}"),
    ("date", "ge2015-01-01"),
    ("_sort", "-date"),
    ("_count", "50"),
)
#: Nearly every row: what sorting and an exact total cost at their worst.
WIDE = (
    ("patient", "p"),
    ("category", "laboratory,vital-signs"),
    ("code", ",".join(f"{LOINC}|{code}" for code in _CODES)),
    ("date", "ge2000-01-01"),
    ("_sort", "-date"),
    ("_count", "50"),
)


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


def scan(lines: list[bytes], since: str, categories: set[str], codes: set[str]) -> tuple[list[dict[str, object]], int]:
    """What a search without an index does: read every line, keep what matches, sort, take 50."""
    kept = []
    for line in lines:
        body = json.loads(line)
        if (
            body["subject"]["reference"] == "Patient/p"
            and any(coding["code"] in categories for concept in body["category"] for coding in concept["coding"])
            and any(coding["system"] == LOINC and coding["code"] in codes for coding in body["code"]["coding"])
            and body["effectiveDateTime"] >= since
        ):
            kept.append(body)
    kept.sort(key=lambda body: body["effectiveDateTime"], reverse=True)
    return kept[:50], len(kept)


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        opened = {}
        for size in SIZES:
            files = synthetic(size)
            began = time.perf_counter()
            Chart.open(files, cache=cache)
            first = (time.perf_counter() - began) * 1000
            again = timed(lambda files=files: Chart.open(files, cache=cache), 20)  # type: ignore[misc]
            chart = Chart.open(files, cache=cache)
            session = timed(lambda chart=chart: ehr.open(chart).close(), 500)  # type: ignore[misc]
            opened[size] = session[0]
            print(
                f"{size:>6} resources: chart indexed once {first:8.1f} ms, from cache {again[0]:6.2f} ms; "
                f"session open and close p50 {session[0]:.4f} ms, p95 {session[1]:.4f} ms (target 5)"
            )
        print(f"opening a session at {SIZES[1]} against {SIZES[0]}: {opened[SIZES[1]] / opened[SIZES[0]]:.1f} x")
        lines = files["Observation.ndjson"].splitlines()
        with ehr.open(chart) as session_:
            _searches(session_, lines)


def _searches(session: ehr.Session, lines: list[bytes]) -> None:
    url = urlsplit(session.base_url)
    connection = http.client.HTTPConnection("127.0.0.1", url.port or 80)
    for name, params, since, codes in (
        ("narrow", NARROW, "2015-01-01", {_CODES[1]}),
        ("wide", WIDE, "2000-01-01", set(_CODES)),
    ):
        categories = {"laboratory"} if name == "narrow" else {"laboratory", "vital-signs"}
        query = "&".join(f"{key}={quote(value, safe=':/|,')}" for key, value in params)
        path = f"{url.path}/Observation?{query}"

        def over_http(path: str = path) -> bytes:
            connection.request("GET", path)
            return connection.getresponse().read()

        def in_process(params: tuple[tuple[str, str], ...] = params) -> Page:
            return session.search("Observation", params)

        wanted, total = scan(lines, since, categories, codes)
        page, bundle = in_process(), json.loads(over_http())
        times = [row.body["effectiveDateTime"] for row in page.rows]
        if not page.total == bundle["total"] == total or times != [body["effectiveDateTime"] for body in wanted]:
            raise AssertionError("the search and the scan differ")
        inside, outside = timed(in_process, 400), timed(over_http, 400)
        scanned = timed(lambda: scan(lines, since, categories, codes), 5)  # noqa: B023
        print(
            f"{name:>6} search, 50 of {total:>6} matches in {len(lines)}: "
            f"in process p50 {inside[0]:.2f} p95 {inside[1]:.2f} ms; "
            f"HTTP p50 {outside[0]:.2f} p95 {outside[1]:.2f} ms; scan of the JSON p50 {scanned[0]:.0f} ms"
        )
        print(
            f"       faster than the scan: {scanned[0] / inside[0]:.0f} x in process, "
            f"{scanned[0] / outside[0]:.0f} x over HTTP"
        )
    connection.close()


if __name__ == "__main__":
    main()
