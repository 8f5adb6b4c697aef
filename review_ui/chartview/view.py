"""One patient's chart at one moment, read once and asked many times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cached_property
from secrets import token_hex

from graders.evidence import patients_of
from review_ui.chartview import absent as absences
from review_ui.chartview import facts as strips
from review_ui.chartview import histories
from review_ui.chartview import labs as results
from review_ui.chartview import medications as drugs
from review_ui.chartview import notes as writings
from review_ui.chartview import problems as lists
from review_ui.chartview import timeline as times
from review_ui.chartview.elements import time_of, when
from review_ui.chartview.words import Line, line
from tasks.fhir.chart import Records
from tasks.fhir.resources import Resource

#: Types that are about nobody: they belong to every patient's chart.
_SHARED = frozenset(
    {"Practitioner", "PractitionerRole", "Organization", "Location", "Medication", "Device", "Endpoint"}
)


class ChartView:
    """`ChartView(chart, "Patient/p-1", now)`: what a physician reads, as values.

    `now` is the task's clock; without one (a draft) the last date in the chart stands in, and `clock_stated` is False.
    Everything is computed when first asked for and kept. Nothing here changes the chart.
    """

    def __init__(self, records: Records, patient: str, now: datetime | None = None) -> None:
        self.records = records
        #: Tells this view from every other, for whoever keeps what was made of it.
        self.mark = token_hex(8)
        self.patient_ref = patient
        self.patient: Resource | None = records.get(patient)
        self.clock_stated = now is not None
        self.zone: tzinfo = now.tzinfo if now and now.tzinfo else UTC
        self.now = now if now is not None else self._last_date()

    def _last_date(self) -> datetime:
        latest = None
        for resource in self._about("Encounter", "Observation", "DocumentReference", "MedicationRequest"):
            at = time_of(resource.body, UTC)
            if at and (latest is None or at.start > latest):
                latest = at.start
        return latest + timedelta(days=1) if latest else datetime.now(UTC)

    def _about(self, *types: str) -> Iterator[Resource]:
        for type in types:
            for resource in self.records.resources(type):
                people = patients_of(resource.body)
                if self.patient_ref in people or (not people and type in _SHARED):
                    yield resource

    @cached_property
    def _measurements(self) -> list[results.Measurement]:
        born = when(self.patient.body.get("birthDate"), self.zone) if self.patient else None
        person = results.Person(strips.sex_of(self.patient) or "", born)
        return results.measurements(self._about("Observation"), self.zone, person)

    @cached_property
    def facts(self) -> list[strips.Fact]:
        """The facts strip."""
        return strips.strip(
            self.patient, self._measurements, list(self._about("AllergyIntolerance")), now=self.now, zone=self.zone
        )

    @cached_property
    def medications(self) -> list[drugs.Medication]:
        """A row a drug, as the record lists them."""
        rows = self._about("MedicationRequest", "MedicationStatement")
        return drugs.medications(rows, self.records, now=self.now, zone=self.zone)

    @cached_property
    def timeline(self) -> list[times.Event]:
        """What happened when."""
        return times.timeline(self._about(*times.SHOWN), now=self.now, zone=self.zone)

    @cached_property
    def problems(self) -> list[lists.Problem]:
        """The problem list."""
        return lists.problems(self._about("Condition"), now=self.now, zone=self.zone)

    @cached_property
    def absent(self) -> list[absences.Absent]:
        """What the chart does not contain."""
        types = [type for type in self.types() if any(self._stands(resource) for resource in self._about(type))]
        return absences.absent(self.patient, types, self._measurements, now=self.now)

    def _stands(self, resource: Resource) -> bool:
        """Whether it is there at the clock: dated no later, and neither wrong nor refuted."""
        if resource.type == "AllergyIntolerance":
            return bool(strips.standing([resource], now=self.now, zone=self.zone))
        at = time_of(resource.body, self.zone)
        return (at is None or at.start <= self.now) and resource.body.get("status") != "entered-in-error"

    @cached_property
    def background(self) -> list[histories.Section]:
        """Allergies, social and family history, immunizations, outstanding orders, where the chart has them."""
        rows = self._about(*histories.SHOWN)
        return histories.sections(rows, self._measurements, now=self.now, zone=self.zone)

    def labs(self, system: results.System = "conventional") -> list[results.Series]:
        """Laboratory results at the clock, as series."""
        if system not in self._labs:
            rows = [one for one in self._measurements if "laboratory" in one.kinds]
            self._labs[system] = results.series(rows, until=self.now, system=system)
        return self._labs[system]

    @cached_property
    def _labs(self) -> dict[results.System, list[results.Series]]:
        return {}

    @cached_property
    def vitals(self) -> list[results.Series]:
        """Vital signs at the clock, as series."""
        rows = [one for one in self._measurements if "vital-signs" in one.kinds]
        return results.series(rows, until=self.now, system="conventional")

    @cached_property
    def notes(self) -> list[writings.Note]:
        """Every note, newest first, those after the clock too: they are marked by their date."""
        return writings.notes(self._about(*writings.SHOWN), zone=self.zone)

    def types(self) -> dict[str, int]:
        """Resource type -> how many the whole chart has, other patients' resources too."""
        known = getattr(self.records, "types", None)
        if known is not None:
            return dict(known)
        counts: dict[str, int] = {}
        for resource in self.records.resources():
            counts[resource.type] = counts.get(resource.type, 0) + 1
        return counts

    def line(self, ref: str) -> Line | None:
        """A resource in clinical words; None where there is none."""
        resource = self.records.get(ref)
        return self._line(resource) if resource else None

    def other(self, resource: Resource) -> bool:
        """Whether it is about a patient, and not about this one."""
        people = {one for one in patients_of(resource.body) if one.startswith("Patient/")}
        return bool(people) and self.patient_ref not in people

    def _line(self, resource: Resource) -> Line:
        return replace(line(resource, self.records, self.zone), other=self.other(resource))

    def page(self, type: str, *, start: int, size: int, words: str = "") -> tuple[list[Line], int]:
        """Resources of one type, newest first, `size` from `start`, and how many there are.

        `words` keeps those whose line holds them (case aside). Every resource is reached, other patients' too.
        """
        everything = self._lines(type)
        if words:
            wanted = words.casefold()
            everything = [one for one in everything if wanted in f"{one.what} {one.detail} {one.ref}".casefold()]
        return everything[start : start + size], len(everything)

    def _lines(self, type: str) -> list[Line]:
        if type not in self._by_type:
            made = [self._line(resource) for resource in self.records.resources(type)]
            made.sort(key=lambda one: (-(one.when.start.timestamp()) if one.when else float("inf"), one.ref))
            self._by_type[type] = made
        return self._by_type[type]

    @cached_property
    def _by_type(self) -> dict[str, list[Line]]:
        return {}
