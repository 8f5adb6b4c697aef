"""Whatever is sent, the answer is FHIR: never a fault of ours, never an unfiltered list, never a half-made write."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime import ehr
from tasks.fhir.chart import Chart
from tasks.fhir.elements import check
from tasks.fhir.resources import Resource

_WORDS = st.sampled_from(
    ["Patient", "Observation", "p1", "metadata", "_search", "_history", "1", "..", "$x", "", "%2F", "%00", "é", "Group"]
)
_NAMES = st.sampled_from(
    [
        "patient",
        "code",
        "date",
        "_id",
        "_count",
        "_sort",
        "_include",
        "_getpages",
        "name",
        "subject.name",
        "value-quantity",
    ]
)
_MODIFIERS = st.sampled_from(["", ":not", ":missing", ":text", ":exact", ":Patient", ":", ":x"])
_VALUES = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["|", ",", "$", "ge2024", "ge", "true", "-1", "999999999999", "%FF", "%", "%25", "\\,", "a|b|c", "2024-01-01"]
    ),
)
_PARAMETER = st.tuples(_NAMES, _MODIFIERS, _VALUES).map(lambda part: f"{part[0]}{part[1]}={part[2]}")
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def session(chart: Chart) -> Any:
    with ehr.open(chart) as opened:
        yield opened


@settings(max_examples=300, deadline=None)
@given(
    method=st.sampled_from(["GET", "POST", "HEAD", "PUT", "DELETE", "BREW"]),
    path=st.lists(_WORDS, max_size=4).map("/".join),
    query=st.lists(_PARAMETER, max_size=3).map("&".join),
    body=st.one_of(st.just(b""), st.binary(max_size=20), _JSON.map(lambda value: json.dumps(value).encode())),
)
def test_any_request_gets_an_answer_in_fhir(
    session: ehr.Session, method: str, path: str, query: str, body: bytes
) -> None:
    answer = session.request(method, f"{path}?{query}" if query else path, body)
    assert 200 <= answer.status < 500
    if method == "HEAD" or answer.status == 304:
        assert answer.body == b""
        return
    said = json.loads(answer.body)
    assert (said["resourceType"] == "OperationOutcome") == (answer.status >= 400)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), _JSON), min_size=1, max_size=3))
def test_any_change_to_an_order_is_stored_valid_or_refused(
    session: ehr.Session, an_order: dict[str, Any], changes: list[tuple[int, Any]]
) -> None:
    body = copy.deepcopy(an_order)
    for place, value in changes:
        places = list(_places(body))
        holder, key = places[place % len(places)]
        holder[key] = value
    written = len(session.ledger)
    made, refused = _attempt(session, body)
    if made is None:
        assert refused is not None
        assert refused.status in (400, 422)
        assert refused.outcome["issue"]
        assert len(session.ledger) == written
    else:
        assert check(made.body) == []
        assert made.body["subject"]["reference"] in ("Patient/p1", "Patient/12345")
        assert len(session.ledger) == written + 1
        assert session.read(made.ref).raw == made.raw == session.ledger[-1].resource


def _attempt(session: ehr.Session, body: dict[str, Any]) -> tuple[Resource | None, ehr.EhrError | None]:
    try:
        return session.create(body), None
    except ehr.EhrError as refused:
        return None, refused


def _places(node: Any) -> Any:
    pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in list(pairs):
        yield node, key
        yield from _places(value)
