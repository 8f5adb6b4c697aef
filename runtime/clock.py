"""The clock of a trial: the task's own `now`, or for a draft without one the latest time that its chart records."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from tasks.fhir.chart import Records
from tasks.package import Task

#: When something was made or recorded, never when it is planned for: an appointment of next year is no present time.
_RECORDED = frozenset(
    {"issued", "recordedDate", "authoredOn", "dateAsserted", "effectiveDateTime", "date", "sent", "received",
     "recorded", "performedDateTime", "occurrenceDateTime", "effectivePeriod", "performedPeriod", "period"}
)  # fmt: skip
#: What these hold lies ahead: orders, slots and plans. Of an order, only when it was written counts.
_PLANS = frozenset(
    {"ServiceRequest", "CommunicationRequest", "DeviceRequest", "Appointment", "CarePlan", "Goal", "Task", "Coverage"}
)
_DATE_TIME = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?)?)?", re.ASCII)


class Clock(NamedTuple):
    """The simulated now, and in words where it comes from."""

    now: datetime
    source: str


def clock_of(task: Task) -> Clock:
    """The task's clock. A draft without one gets the latest recorded time of its chart, or the start of 2025."""
    context = task.meta.context
    if context is not None and context.now is not None:
        return Clock(context.now, "the task's context.now")
    latest = latest_recorded(task.chart)
    if latest is None:
        return Clock(datetime(2025, 1, 1, tzinfo=UTC), "2025-01-01: the draft has no context.now and no dated record")
    return Clock(latest, "the latest time recorded in the chart: the draft has no context.now")


def latest_recorded(records: Records) -> datetime | None:
    """The latest time at which anything in the records was made; None where nothing is dated."""
    latest: datetime | None = None
    for resource in records.resources():
        for key, value in resource.body.items():
            if key not in _RECORDED or (resource.type in _PLANS and key != "authoredOn"):
                continue
            at = _instant(value.get("end") or value.get("start") if isinstance(value, dict) else value)
            if at is not None and (latest is None or at > latest):
                latest = at
    return latest


def _instant(value: Any) -> datetime | None:
    """A FHIR date or dateTime as the last second that it may mean; UTC where it names no zone."""
    if not isinstance(value, str) or not (match := _DATE_TIME.fullmatch(value)):
        return None
    try:
        if match[3]:
            at = datetime.fromisoformat(value)
            return at if at.tzinfo else at.replace(tzinfo=UTC)
        if match[2]:
            return datetime.fromisoformat(value).replace(tzinfo=UTC) + timedelta(days=1, seconds=-1)
    except (ValueError, OverflowError):
        pass
    # A bare year or month says too little to set a clock by.
    return None
