"""Encounters, vital signs and notes. The notes are plain text files in `notes/`, written by hand."""

# ruff: noqa: E501 (one row of a table stands in one line)

from __future__ import annotations

from datetime import datetime, timedelta
from importlib.resources import files
from typing import NamedTuple

from tasks.casebook.charting import LOINC, Analyte, Code, Record
from tasks.casebook.nephrology_finerenone_011.people import clinician, place
from tasks.errors import ChartError


class Visit(NamedTuple):
    """One encounter; `vitals` is (systolic, diastolic, pulse, kg) where they were taken."""

    start: str
    minutes: int
    kind: str
    reason: str
    by: str
    at: str = "clinic"
    vitals: tuple[int, int, int, float] | None = None
    setting: str = "AMB"


def _phone(start: str, reason: str, minutes: int = 10) -> Visit:
    return Visit(start, minutes, "Telephone", reason, "sorrel", setting="VR")


#: By date, which is also the key.
VISITS: tuple[Visit, ...] = (
    Visit("2019-02-14T10:30:00-06:00", 45, "New patient", "Establish care", "alder", vitals=(146, 86, 78, 118.4)),
    Visit("2019-05-20T15:15:00-05:00", 20, "Office visit", "Diabetes, hypertension", "alder", vitals=(140, 84, 76, 118.9)),
    Visit("2019-09-12T15:45:00-05:00", 20, "Office visit", "Diabetes follow-up", "alder", vitals=(138, 82, 74, 119.2)),
    Visit("2019-11-05T09:00:00-06:00", 40, "Eye examination", "Diabetic eye exam", "teasel", "eye"),
    Visit("2020-01-16T15:30:00-06:00", 20, "Office visit", "Diabetes, hypertension", "alder", vitals=(138, 82, 72, 119.0)),
    Visit("2020-05-07T10:45:00-05:00", 20, "Video visit", "Diabetes", "alder", setting="VR"),
    Visit("2020-08-20T16:00:00-05:00", 20, "Office visit", "Diabetes, kidney disease", "alder", vitals=(144, 84, 80, 120.3)),
    Visit("2020-12-03T14:40:00-06:00", 20, "Office visit", "Diabetes follow-up", "willow", vitals=(136, 80, 76, 120.8)),
    Visit("2021-03-11T15:20:00-06:00", 20, "Office visit", "Diabetes, kidney disease", "alder", vitals=(136, 80, 74, 121.0)),
    Visit("2021-06-17T11:00:00-05:00", 45, "Consultation", "Chronic kidney disease", "spruce", "specialty",
          vitals=(134, 80, 72, 120.6)),
    Visit("2021-09-09T16:10:00-05:00", 20, "Office visit", "Diabetes follow-up", "alder", vitals=(132, 78, 74, 121.2)),
    Visit("2021-12-09T09:20:00-06:00", 20, "Office visit", "Diabetes follow-up", "alder", vitals=(134, 80, 74, 121.5)),
    Visit("2022-03-17T16:20:00-05:00", 20, "Office visit", "Diabetes follow-up", "alder", vitals=(132, 80, 76, 120.9)),
    Visit("2022-06-23T16:00:00-05:00", 20, "Office visit", "Leg cramps", "alder", vitals=(130, 78, 78, 120.4)),
    Visit("2022-09-15T10:00:00-05:00", 20, "Office visit", "Diabetes follow-up", "alder", vitals=(132, 78, 72, 120.8)),
    Visit("2022-12-15T14:20:00-06:00", 20, "Office visit", "Medication refill", "willow", vitals=(134, 78, 74, 121.1)),
    Visit("2023-02-08T08:30:00-06:00", 20, "Office visit", "Sinus congestion", "willow", vitals=(136, 82, 84, 120.9)),
    Visit("2023-05-09T16:30:00-05:00", 25, "Office visit", "Diabetes, kidney disease", "alder", vitals=(130, 76, 74, 120.2)),
    _phone("2023-06-13T09:55:00-05:00", "Lightheadedness"),
    Visit("2023-08-15T15:50:00-05:00", 20, "Office visit", "Diabetes follow-up", "alder", vitals=(126, 74, 72, 117.1)),
    Visit("2023-11-14T10:10:00-06:00", 20, "Office visit", "Diabetes follow-up", "alder", vitals=(128, 76, 70, 115.4)),
    Visit("2024-02-13T16:00:00-06:00", 20, "Office visit", "Diabetes, palpitations", "alder", vitals=(130, 76, 72, 113.9)),
    Visit("2024-03-20T10:00:00-05:00", 40, "Consultation", "Palpitations", "birch", "specialty", vitals=(132, 78, 68, 114.1)),
    Visit("2024-05-14T15:40:00-05:00", 20, "Office visit", "Diabetes follow-up", "alder", vitals=(128, 74, 72, 113.2)),
    _phone("2024-06-11T09:30:00-05:00", "Dysuria"),
    Visit("2024-06-12T17:30:00-05:00", 30, "Urgent care", "Dysuria", "cedar", "urgent", vitals=(126, 72, 82, 113.4)),
    Visit("2024-09-04T15:00:00-05:00", 30, "Transitional care", "Hospital follow-up", "willow", vitals=(136, 80, 80, 114.6)),
    Visit("2024-10-15T16:20:00-05:00", 25, "Office visit", "Diabetes, kidney disease", "alder", vitals=(134, 78, 76, 115.2)),
    Visit("2025-01-21T16:00:00-06:00", 20, "Office visit", "Diabetes follow-up", "alder", vitals=(136, 80, 76, 116.0)),
    Visit("2025-02-25T10:30:00-06:00", 90, "Endoscopy", "Colon cancer screening", "elm", "specialty",
          vitals=(128, 74, 70, 115.7)),
    Visit("2025-04-22T15:50:00-05:00", 20, "Office visit", "Diabetes follow-up", "alder", vitals=(132, 78, 74, 116.4)),
    Visit("2025-06-03T13:00:00-05:00", 45, "Eye examination", "Diabetic eye exam", "teasel", "eye"),
    Visit("2025-07-29T16:10:00-05:00", 20, "Office visit", "Diabetes follow-up", "alder", vitals=(134, 76, 74, 116.9)),
    Visit("2025-08-14T09:40:00-05:00", 30, "Consultation", "Urinary frequency", "larch", "specialty",
          vitals=(138, 80, 76, 117.0)),
    Visit("2025-10-28T16:30:00-05:00", 20, "Office visit", "Diabetes follow-up", "alder", vitals=(136, 78, 74, 117.3)),
    Visit("2025-11-18T13:20:00-06:00", 50, "Physical therapy", "Right knee pain", "sedge", "therapy"),
    Visit("2025-12-16T14:10:00-06:00", 45, "Physical therapy", "Right knee pain", "sedge", "therapy"),
    _phone("2026-01-13T11:20:00-06:00", "Refill, sore throat"),
    Visit("2026-01-27T15:00:00-06:00", 45, "Nutrition", "Medical nutrition therapy", "juniper", vitals=(136, 78, 74, 117.9)),
    Visit("2026-02-10T10:10:00-06:00", 35, "Telephone", "Medication review", "hazel", setting="VR"),
    Visit("2026-03-05T16:40:00-06:00", 40, "Office visit", "Annual visit", "alder", vitals=(134, 78, 74, 117.6)),
    _phone("2026-03-06T08:10:00-06:00", "Critical laboratory call"),
)  # fmt: skip

HEIGHT_CM = 181
_VITAL = {
    "pulse": Analyte(Code("Heart rate", "8867-4", LOINC), "/min", "/min"),
    "weight": Analyte(Code("Body weight", "29463-7", LOINC), "kg", "kg", 1),
    "bmi": Analyte(Code("Body mass index (BMI)", "39156-5", LOINC), "kg/m2", "kg/m2", 1),
    "temperature": Analyte(Code("Body temperature", "8310-5", LOINC), "Cel", "Cel", 1),
    "breaths": Analyte(Code("Respiratory rate", "9279-1", LOINC), "/min", "/min"),
    "saturation": Analyte(Code("Oxygen saturation in Arterial blood by Pulse oximetry", "59408-5", LOINC), "%", "%"),
    "height": Analyte(Code("Body height", "8302-2", LOINC), "cm", "cm"),
}

#: LOINC document types; a scanned page has the one that says nothing.
NOTE_KINDS = {
    "progress": Code("Progress note", "11506-3", LOINC),
    "consult": Code("Consult note", "11488-4", LOINC),
    "telephone": Code("Telephone encounter Note", "34748-4", LOINC),
    "procedure": Code("Procedure note", "28570-0", LOINC),
    "letter": Code("Letter"),
    "note": Code("Note", "34109-9", LOINC),
}


def encounter_key(date: str) -> str:
    """The key of the encounter on this date (YYYY-MM-DD)."""
    return f"visit {date}"


def add_visits(record: Record) -> None:
    """Every encounter with its vital signs."""
    for visit in VISITS:
        date = visit.start[:10]
        start = datetime.fromisoformat(visit.start)
        end = (start + timedelta(minutes=visit.minutes)).isoformat()
        encounter = record.encounter(
            encounter_key(date), visit.start, end, kind=visit.kind, reason=visit.reason, by=clinician(visit.by),
            at=place(visit.at), setting=visit.setting,
        )  # fmt: skip
        if visit.vitals is None:
            continue
        systolic, diastolic, pulse, weight = visit.vitals
        at = (start + timedelta(minutes=4)).isoformat()
        record.blood_pressure(f"{date} bp", systolic, diastolic, at, encounter)
        values = {
            "pulse": pulse,
            "weight": weight,
            "bmi": weight / (HEIGHT_CM / 100) ** 2,
            "temperature": 36.7 + record.jitter(f"{date} t", 0.3),
            "breaths": 16 + round(record.jitter(f"{date} rr", 2)),
            "saturation": 97 + round(record.jitter(f"{date} sat", 1.4)),
        }
        if visit.kind in ("New patient", "Consultation"):
            values["height"] = HEIGHT_CM
        for name, value in values.items():
            record.result(f"{date} {name}", _VITAL[name], value, at, encounter=encounter, category="vital-signs")


def add_notes(record: Record) -> None:
    """Every file of notes/: a head of `key: value` lines, an empty line, the text as the clinician wrote it."""
    for file in sorted(files(__package__).joinpath("notes").iterdir(), key=lambda entry: entry.name):
        head, _, text = file.read_text("utf-8").partition("\n\n")
        fields = dict(line.split(": ", 1) for line in head.splitlines())
        try:
            at, period = fields["encounter"], fields.get("period", "").split()
            record.note(
                file.name.removesuffix(".txt"),
                NOTE_KINDS[fields["kind"]],
                fields["title"],
                text,
                fields["filed"],
                by=clinician(fields["by"]),
                encounter=None if at == "-" else record.ref("Encounter", encounter_key(at)),
                period=(period[0], period[1]) if period else None,
            )
        except (KeyError, IndexError) as error:
            raise ChartError(f"the head of the note lacks or misnames {error}", where=file.name) from None
