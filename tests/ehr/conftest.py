"""A small chart with every awkward value, a session on each backend, and a client that speaks HTTP to it."""

from __future__ import annotations

import copy
import http.client
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from runtime import ehr
from runtime.ehr.session import Response
from tasks.fhir.chart import Chart

#: Every backend that the conformance suite runs over; hapi and url join here.
BACKENDS = ["embedded"]
NOW = datetime(2025, 3, 14, 9, 30, tzinfo=UTC)
LOINC = "http://loinc.org"

#: Awkward values of every kind: decimals, time zones, partial dates, local codes, a reference that leads nowhere.
_ROWS = Path(__file__).parent / "records.ndjson"

#: 45 weights, so that a search has more than one page.
_WEIGHTS = [
    {
        "resourceType": "Observation",
        "id": f"w-{n:02}",
        "status": "final",
        "category": [{"coding": [{"code": "vital-signs"}]}],
        "code": {"coding": [{"system": LOINC, "code": "29463-7"}]},
        "subject": {"reference": "Patient/p1"},
        "effectiveDateTime": f"2022-{n % 12 + 1:02}-10",
    }
    for n in range(45)
]

_ORDER = {
    "resourceType": "ServiceRequest",
    "status": "active",
    "intent": "order",
    "code": {"coding": [{"system": LOINC, "code": "2823-3", "display": "Potassium"}]},
    "subject": {"reference": "Patient/p1"},
    "requester": {"reference": "Practitioner/dr1"},
    "authoredOn": "2025-03-14T09:30:01Z",
}


class Client:
    """A FHIR client on one kept-alive connection."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self._url = urlsplit(base_url)
        self._connection = http.client.HTTPConnection("127.0.0.1", self._url.port or 80, timeout=60)

    def send(
        self, method: str, target: str, body: bytes | str | None = None, headers: dict[str, str] | None = None
    ) -> Response:
        """One request; `target` is below the base URL, or an absolute URL of this server."""
        path = (
            target.removeprefix(f"http://{self._url.netloc}")
            if target.startswith("http://")
            else f"{self._url.path}/{target}"
        )
        path = path if target else self._url.path
        # http.client refuses blanks only; a raw | goes out as it is.
        self._connection.putrequest(method, path.replace(" ", "%20"), skip_accept_encoding=True)
        data = body.encode() if isinstance(body, str) else body
        for name, value in (headers or {}).items():
            self._connection.putheader(name, value)
        if data is not None:
            self._connection.putheader("Content-Length", str(len(data)))
        self._connection.endheaders(data)
        answer = self._connection.getresponse()
        return Response(answer.status, tuple(answer.getheaders()), answer.read())

    def search(self, query: str) -> dict[str, Any]:
        """The Bundle of a search that has to succeed."""
        answer = self.send("GET", query)
        assert answer.status == 200, answer.body
        found: dict[str, Any] = json.loads(answer.body)
        return found

    def ids(self, query: str) -> list[str]:
        """The ids of the matches on the first page."""
        entries = self.search(query).get("entry", [])
        return [entry["resource"]["id"] for entry in entries if entry["search"]["mode"] == "match"]

    def refused(self, query: str, *, status: int = 400) -> str:
        """The diagnostics of a request that has to be refused."""
        answer = self.send("GET", query)
        assert answer.status == status, (answer.status, answer.body[:300])
        said = json.loads(answer.body)
        assert said["resourceType"] == "OperationOutcome"
        diagnostics: str = said["issue"][0]["diagnostics"]
        return diagnostics

    def create(self, body: dict[str, Any]) -> Response:
        """POST a resource to its own type."""
        return self.send("POST", body["resourceType"], json.dumps(body), {"Content-Type": "application/fhir+json"})

    def form(self, type: str, *pairs: tuple[str, str]) -> Response:
        """POST Type/_search."""
        return self.send(
            "POST", f"{type}/_search", urlencode(pairs), {"Content-Type": "application/x-www-form-urlencoded"}
        )

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(scope="session")
def chart_files() -> dict[str, bytes]:
    lines: dict[str, list[str]] = {}
    for line in [*_ROWS.read_text("utf-8").splitlines(), *(json.dumps(row) for row in _WEIGHTS)]:
        lines.setdefault(json.loads(line)["resourceType"], []).append(line)
    return {f"{type}.ndjson": "".join(f"{line}\n" for line in rows).encode() for type, rows in lines.items()}


@pytest.fixture(scope="session")
def chart(chart_files: dict[str, bytes]) -> Chart:
    return Chart.open(chart_files)


@pytest.fixture(params=BACKENDS)
def session(request: pytest.FixtureRequest, chart: Chart) -> Iterator[ehr.Session]:
    with ehr.open(chart, backend=request.param, now=NOW) as opened:
        yield opened


@pytest.fixture
def client(session: ehr.Session) -> Iterator[Client]:
    made = Client(session.base_url)
    yield made
    made.close()


@pytest.fixture
def connect() -> Iterator[Callable[[str], Client]]:
    """Connects clients; those that are still open at the end of the test are closed."""
    made: list[Client] = []

    def client(base_url: str) -> Client:
        made.append(Client(base_url))
        return made[-1]

    yield client
    for one in made:
        one.close()


@pytest.fixture(scope="session")
def an_order() -> dict[str, Any]:
    """A ServiceRequest that every backend takes. Copy it before changing it."""
    return _ORDER


@pytest.fixture
def order(an_order: dict[str, Any]) -> dict[str, Any]:
    """A copy of it for this test."""
    return copy.deepcopy(an_order)
