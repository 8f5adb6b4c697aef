"""Dates as ranges, and the comparison of a range in a record with a range asked for."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.fhir.chart import Chart
from tasks.fhir.dates import EARLIEST, LATEST, Span, covering, joined, span_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAYS = st.dates(date(1, 1, 2), date(9998, 12, 30))
OFFSETS = st.integers(-14 * 60, 14 * 60)


def microseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


@given(DAYS)
def test_a_day_covers_all_of_it(day: date) -> None:
    span = span_of(day.isoformat())
    assert span is not None
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    assert span.low == microseconds(start)
    assert span.high == microseconds(start + timedelta(days=1)) - 1
    assert span.low_day == span.high_day == day.toordinal()


@given(DAYS)
def test_a_day_lies_in_its_month_and_a_month_in_its_year(day: date) -> None:
    spans = [span_of(day.isoformat()[:length]) for length in (10, 7, 4)]
    assert all(spans)
    inner: Span
    outer: Span
    for inner, outer in itertools.pairwise(spans):  # type: ignore[assignment]
        assert outer.low <= inner.low <= inner.high <= outer.high
        assert outer.low_day <= inner.low_day <= inner.high_day <= outer.high_day


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)), OFFSETS)  # noqa: DTZ001
def test_a_moment_is_an_instant_and_keeps_its_own_day(naive: datetime, offset: int) -> None:
    moment = naive.replace(tzinfo=timezone(timedelta(minutes=offset)), microsecond=naive.microsecond // 1000 * 1000)
    sign, size = ("-" if offset < 0 else "+"), abs(offset)
    text = f"{moment.strftime('%Y').zfill(4)}{moment.strftime('-%m-%dT%H:%M:%S')}.{moment.microsecond // 1000:03d}"
    span = span_of(f"{text}{sign}{size // 60:02d}:{size % 60:02d}")
    assert span is not None
    assert span.low == microseconds(moment)
    assert span.high == span.low + 999
    assert span.low_day == moment.date().toordinal()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2023-",
        "2023-1",
        "2023-13",
        "2023-02-29",
        "0000",
        "20230101",
        "2023-01-01T",
        "2023-01-01T10",
        "23",
        "x",
        "2023-01-01T24:00:00Z",
        "2023-01-01T10:60:00Z",
        "2023-01-01T10:00:61Z",
        "2023-01-01T10:00:00+15:00",
        "2023-01-01T10:00:00+0100",
        " 2023",
        "2023\n",
        "２０２３",
        "2023-01-01 10:00:00",
        "2023-01-01T10:00:00z",
    ],
)
def test_what_is_not_a_date_has_no_range(text: str) -> None:
    assert span_of(text) is None


@given(st.text(max_size=30))
def test_no_text_breaks_the_reading_of_dates(text: str) -> None:
    span = span_of(text)
    assert span is None or span.low <= span.high


def test_a_minute_is_a_range_of_a_minute_and_a_leap_second_is_let_through() -> None:
    minute, second = span_of("2020-01-15T13:30"), span_of("2016-12-31T23:59:60Z")
    assert minute is not None
    assert minute.high - minute.low == 60_000_000 - 1
    assert second is not None
    assert second.low == span_of("2017-01-01T00:00:00Z").low  # type: ignore[union-attr]


def test_a_period_is_open_where_it_is_not_given() -> None:
    day = span_of("2021-03-15")
    assert joined(None, None) is None
    assert joined(day, None)[:2] == (day.low, LATEST)  # type: ignore[index, union-attr]
    assert joined(None, day)[:2] == (EARLIEST, day.high)  # type: ignore[index, union-attr]
    assert covering([]) is None


#: The fixture and the table of HAPI's answers in section 7 of the field page on HAPI; ge and le as R4 has them, which
#: adds what lies inside the period.
FIXTURE = {
    "a": "2020-12-31",
    "b": "2021-01-01",
    "c": "2021-03-01",
    "d": "2021-03-15",
    "e": "2021-03-31",
    "f": "2021-12-31",
    "g": "2022-01-01",
    "Y": "2021",
    "M": "2021-03",
    "t": "2021-03-15T10:00:00Z",
}
TABLE = {
    "2021": {"": "MYbcdeft", "ne": "ag", "gt": "g", "lt": "a", "sa": "g", "eb": "a"}
    | {"ge": "MYbcdeftg", "le": "MYbcdefta"},
    "2021-03": {"": "Mcdet", "ne": "Yabfg", "gt": "Yfg", "lt": "Yab", "sa": "fg", "eb": "ab"}
    | {"ge": "McdetYfg", "le": "McdetYab"},
    "2021-03-15": {"": "dt", "ne": "MYabcefg", "gt": "MYefg", "ge": "MYdefgt", "lt": "MYabc", "le": "MYabcdt"}
    | {"sa": "efg", "eb": "abc"},
    "2021-03-15T10:00:00Z": {"": "t", "ne": "MYabcdefg", "gt": "MYdefg", "ge": "MYdefgt", "lt": "MYabcd"}
    | {"le": "MYabcdt", "sa": "efg", "eb": "abc"},
}


@pytest.fixture(scope="module")
def dated() -> Chart:
    lines = [
        json.dumps({"resourceType": "Procedure", "id": f"p{k}", "performedDateTime": v}) for k, v in FIXTURE.items()
    ]
    return Chart.open({"Procedure.ndjson": "\n".join(lines).encode()})


@pytest.mark.parametrize(("asked", "prefix"), [(asked, prefix) for asked, row in TABLE.items() for prefix in row])
def test_prefixes_compare_ranges_as_measured(dated: Chart, asked: str, prefix: str) -> None:
    page = dated.search("Procedure", [("date", f"{prefix}{asked}"), ("_count", "50")])
    assert sorted(resource.id[1:] for resource in page.rows) == sorted(TABLE[asked][prefix])


@given(st.sampled_from([*FIXTURE.values(), "2021-03-15T10:00", "2021-03-15T23:30:00-05:00"]))
def test_equal_and_not_equal_part_the_record_and_bounds_hold_what_they_bound(dated: Chart, asked: str) -> None:
    def found(prefix: str) -> set[str]:
        page = dated.search("Procedure", [("date", f"{prefix}{asked}"), ("_count", "50")])
        return {resource.id for resource in page.rows}

    everything = {f"p{name}" for name in FIXTURE}
    assert found("eq") | found("ne") == everything
    assert not found("eq") & found("ne")
    assert found("eq") <= found("ge") & found("le")
    assert found("sa") <= found("gt") <= found("ge")
    assert found("eb") <= found("lt") <= found("le")
    assert not found("sa") & found("eb")


def test_a_day_is_the_day_as_written_and_a_time_is_an_instant() -> None:
    line = '{"resourceType":"Procedure","id":"late","performedDateTime":"2020-01-15T23:30:00-05:00"}'
    chart = Chart.open({"Procedure.ndjson": line.encode()})

    def total(value: str) -> int:
        return chart.search("Procedure", [("date", value)]).total

    assert total("2020-01-15") == 1
    assert total("2020-01-16") == 0
    assert total("ge2020-01-16T00:00:00Z") == 1
    assert total("2020-01-16T04:30:00Z") == 1
