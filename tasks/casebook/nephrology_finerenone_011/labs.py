"""Laboratory results, 2019 to March 2026. What a grade rests on (creatinine, potassium, UACR, A1c) is set by hand in
`DRAWS` and `RIVERSIDE`; the rest is drawn around plausible values.

The clinic's laboratory reports in conventional units with an eGFR (CKD-EPI 2009 until the end of 2021, CKD-EPI 2021
since). The Riverside laboratory near the patient's job reports SI units, no eGFR, and its albumin-creatinine ratio in
mg/mmol (1 mg/mmol = 8.84 mg/g).
"""

# ruff: noqa: E501 (one row of a table stands in one line)

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import NamedTuple

from tasks.casebook.charting import LOINC, Analyte, Code, Record
from tasks.casebook.nephrology_finerenone_011.people import place
from tasks.casebook.nephrology_finerenone_011.visits import VISITS, encounter_key

BORN = date(1968, 10, 12)


def _test(text: str, loinc: str, unit: str, ucum: str, places: int, low: float | None, high: float | None) -> Analyte:
    return Analyte(Code(text, loinc, LOINC if loinc else ""), unit, ucum, places, low, high)


SODIUM = _test("Sodium [Moles/volume] in Serum or Plasma", "2951-2", "mmol/L", "mmol/L", 0, 136, 145)
POTASSIUM = _test("Potassium [Moles/volume] in Serum or Plasma", "2823-3", "mmol/L", "mmol/L", 1, 3.5, 5.1)
CHLORIDE = _test("Chloride [Moles/volume] in Serum or Plasma", "2075-0", "mmol/L", "mmol/L", 0, 98, 107)
BICARBONATE = _test("Carbon dioxide, total [Moles/volume] in Serum or Plasma", "2028-9", "mmol/L", "mmol/L", 0, 22, 29)
UREA = _test("Urea nitrogen [Mass/volume] in Serum or Plasma", "3094-0", "mg/dL", "mg/dL", 0, 7, 20)
CREATININE = _test("Creatinine [Mass/volume] in Serum or Plasma", "2160-0", "mg/dL", "mg/dL", 2, 0.7, 1.3)
GLUCOSE = _test("Glucose [Mass/volume] in Serum or Plasma", "2345-7", "mg/dL", "mg/dL", 0, 70, 99)
CALCIUM = _test("Calcium [Mass/volume] in Serum or Plasma", "17861-6", "mg/dL", "mg/dL", 1, 8.6, 10.2)
EGFR_2009 = _test(
    "Glomerular filtration rate/1.73 sq M.predicted [Volume Rate/Area] in Serum, Plasma or Blood by Creatinine-based "
    "formula (CKD-EPI)", "62238-1", "mL/min/1.73m2", "mL/min/{1.73_m2}", 0, 60, None)  # fmt: skip
EGFR_2021 = _test(
    "Glomerular filtration rate/1.73 sq M.predicted [Volume Rate/Area] in Serum, Plasma or Blood by Creatinine-based "
    "formula (CKD-EPI 2021)", "98979-8", "mL/min/1.73m2", "mL/min/{1.73_m2}", 0, 60, None)  # fmt: skip
A1C = _test("Hemoglobin A1c/Hemoglobin.total in Blood", "4548-4", "%", "%", 1, 4.0, 5.6)
UACR = _test("Microalbumin/Creatinine [Mass Ratio] in Urine", "14959-1", "mg/g", "mg/g", 0, None, 29)
LIPIDS = {
    "chol": (_test("Cholesterol [Mass/volume] in Serum or Plasma", "2093-3", "mg/dL", "mg/dL", 0, None, 199), 148, 12),
    "hdl": (_test("Cholesterol in HDL [Mass/volume] in Serum or Plasma", "2085-9", "mg/dL", "mg/dL", 0, 40, None), 41, 4),
    "trig": (_test("Triglyceride [Mass/volume] in Serum or Plasma", "2571-8", "mg/dL", "mg/dL", 0, None, 149), 168, 30),
    "ldl": (_test("Cholesterol in LDL [Mass/volume] in Serum or Plasma by calculation", "13457-7", "mg/dL", "mg/dL",
                  0, None, 99), 74, 8),
}  # fmt: skip
LIVER = {
    "ast": (_test("Aspartate aminotransferase [Enzymatic activity/volume] in Serum or Plasma", "1920-8", "U/L", "U/L",
                  0, 10, 40), 27, 6),
    "alt": (_test("Alanine aminotransferase [Enzymatic activity/volume] in Serum or Plasma", "1742-6", "U/L", "U/L",
                  0, 10, 50), 36, 9),
    "alp": (_test("Alkaline phosphatase [Enzymatic activity/volume] in Serum or Plasma", "6768-6", "U/L", "U/L",
                  0, 40, 130), 78, 9),
    "bili": (_test("Bilirubin.total [Mass/volume] in Serum or Plasma", "1975-2", "mg/dL", "mg/dL", 1, 0.2, 1.2), 0.6, 0.2),
    "alb": (_test("Albumin [Mass/volume] in Serum or Plasma", "1751-7", "g/dL", "g/dL", 1, 3.5, 5.0), 4.0, 0.2),
    "prot": (_test("Protein [Mass/volume] in Serum or Plasma", "2885-2", "g/dL", "g/dL", 1, 6.0, 8.3), 7.0, 0.3),
}  # fmt: skip
BLOOD = {
    "wbc": (_test("Leukocytes [#/volume] in Blood by Automated count", "6690-2", "10*3/uL", "10*3/uL", 1, 4.0, 11.0), 7.4, 1.1),
    "hgb": (_test("Hemoglobin [Mass/volume] in Blood", "718-7", "g/dL", "g/dL", 1, 13.2, 17.1), 13.6, 0.3),
    "hct": (_test("Hematocrit [Volume Fraction] of Blood by Automated count", "4544-3", "%", "%", 1, 38.5, 50.0), 41.0, 1.0),
    "mcv": (_test("MCV [Entitic volume] by Automated count", "787-2", "fL", "fL", 0, 80, 100), 89, 2),
    "plt": (_test("Platelets [#/volume] in Blood by Automated count", "777-3", "10*3/uL", "10*3/uL", 0, 150, 400), 236, 22),
}  # fmt: skip
PHOSPHATE = _test("Phosphate [Mass/volume] in Serum or Plasma", "2777-1", "mg/dL", "mg/dL", 1, 2.5, 4.5)
PTH = _test("Parathyrin.intact [Mass/volume] in Serum or Plasma", "2731-8", "pg/mL", "pg/mL", 0, 15, 65)
URATE = _test("Urate [Mass/volume] in Serum or Plasma", "3084-1", "mg/dL", "mg/dL", 1, 3.5, 7.2)
MAGNESIUM = _test("Magnesium [Mass/volume] in Serum or Plasma", "19123-9", "mg/dL", "mg/dL", 1, 1.6, 2.6)
TSH = _test("Thyrotropin [Units/volume] in Serum or Plasma", "3016-3", "mIU/L", "m[IU]/L", 2, 0.4, 4.5)
PSA = _test("Prostate specific Ag [Mass/volume] in Serum or Plasma", "2857-1", "ng/mL", "ng/mL", 1, None, 4.0)
FERRITIN = _test("Ferritin [Mass/volume] in Serum or Plasma", "2276-4", "ng/mL", "ng/mL", 0, 30, 400)

# The Riverside laboratory: local names where the code is not certain.
SI_CREATININE = _test("Creatinine [Moles/volume] in Serum or Plasma", "14682-9", "umol/L", "umol/L", 0, 62, 115)
SI_GLUCOSE = _test("Glucose [Moles/volume] in Serum or Plasma", "14749-6", "mmol/L", "mmol/L", 1, 3.9, 5.5)
SI_UREA = _test("UREA, SERUM (RVS)", "", "mmol/L", "mmol/L", 1, 2.5, 7.1)
SI_UACR = _test("ALB/CREAT RATIO, RANDOM URINE (RVS)", "", "mg/mmol", "mg/mmol", 0, None, 3)


class Draw(NamedTuple):
    """One morning's blood at the clinic: creatinine mg/dL, potassium mmol/L, A1c %, UACR mg/g."""

    day: str
    creatinine: float
    potassium: float
    a1c: float | None = None
    uacr: int | None = None
    sodium: int | None = None
    extras: str = ""  # of: lipids, liver, blood, minerals, urate
    comment: str = ""


DRAWS: tuple[Draw, ...] = (
    Draw("2019-02-14", 1.28, 4.3, 8.4, 110, extras="lipids liver blood urate"),
    Draw("2019-03-14", 1.33, 4.4),
    Draw("2019-05-20", 1.31, 4.4, 7.9, 96),
    Draw("2019-06-04", 1.34, 4.1),
    Draw("2019-09-12", 1.30, 4.0, 7.8),
    Draw("2020-01-16", 1.32, 4.0, 7.7, 110, extras="lipids liver blood urate"),
    Draw("2020-08-20", 1.38, 3.9, 8.1, 165, extras="lipids"),
    Draw("2020-12-03", 1.40, 3.8, 8.0),
    Draw("2021-03-11", 1.45, 3.7, 8.0, 240, extras="liver blood urate"),
    Draw("2021-06-10", 1.44, 3.8, extras="blood"),
    Draw("2021-09-09", 1.46, 3.6, 7.8, 262, extras="lipids"),
    Draw("2021-12-09", 1.49, 3.7, 8.0),
    Draw("2022-03-17", 1.50, 3.6, 8.1, 318, extras="liver blood"),
    Draw("2022-06-23", 1.52, 3.2, 8.3, extras="magnesium"),
    Draw("2022-07-07", 1.53, 3.8),
    Draw("2022-09-15", 1.56, 3.9, 8.2, extras="lipids urate"),
    Draw("2022-12-15", 1.58, 4.0, 8.2, 352),
    Draw("2023-05-09", 1.64, 4.1, 8.4, 410, extras="lipids liver blood"),
    Draw("2023-06-12", 1.81, 4.2, sodium=133),
    Draw("2023-06-27", 1.72, 4.3),
    Draw("2023-08-15", 1.70, 4.4, 7.6, 330),
    Draw("2023-11-14", 1.75, 4.3, 7.4, 301, extras="lipids urate"),
    Draw("2024-02-13", 1.82, 4.4, 7.3, 280, extras="liver blood minerals"),
    Draw("2024-05-14", 1.86, 4.3, 7.2, 292, extras="lipids"),
    Draw("2024-09-04", 1.96, 4.4),
    Draw("2024-10-15", 2.00, 4.4, 8.0, 438, extras="liver blood minerals"),
    Draw("2025-01-21", 2.02, 4.5, 8.2, 470, extras="lipids urate"),
    Draw("2025-04-22", 2.06, 4.6, 8.3, 560),
    Draw("2025-07-29", 2.11, 4.6, 8.0, extras="blood minerals"),
    Draw("2025-10-28", 2.16, 4.6, 8.2, extras="lipids liver"),
    Draw("2026-03-05", 2.21, 5.6, 8.1, 690, extras="lipids liver blood minerals",
         comment="Specimen HEMOLYZED (index 3+). Potassium may be falsely increased. Recollection recommended."),
)  # fmt: skip

#: Riverside: day, creatinine umol/L, potassium mmol/L, glucose mmol/L, urea mmol/L, UACR mg/mmol.
RIVERSIDE: tuple[tuple[str, int, float, float, float, int | None], ...] = (
    ("2025-08-19T07:10:00-05:00", 188, 4.6, 9.4, 12.1, 71),
    ("2026-03-09T07:05:00-05:00", 199, 4.7, 8.8, 13.6, None),
)


def age_on(day: str) -> int:
    """Completed years on a day (YYYY-MM-DD)."""
    at = date.fromisoformat(day)
    return at.year - BORN.year - ((at.month, at.day) < (BORN.month, BORN.day))


def egfr(creatinine: float, day: str) -> tuple[Analyte, float]:
    """What the clinic's laboratory printed for a man: CKD-EPI 2009 through 2021, CKD-EPI 2021 after (mL/min/1.73 m2).

    Sources: Levey 2009 (race coefficient not applied); Inker 2021 (142, 0.9, -0.302, -1.200, 0.9938).
    """
    ratio, years = creatinine / 0.9, age_on(day)
    if day < "2022-01-01":
        return EGFR_2009, 141 * min(ratio, 1) ** -0.411 * max(ratio, 1) ** -1.209 * 0.993**years
    return EGFR_2021, 142 * min(ratio, 1) ** -0.302 * max(ratio, 1) ** -1.200 * 0.9938**years


def add_labs(record: Record) -> None:
    """Every result of both laboratories, with reports over the panels."""
    starts = {visit.start[:10]: visit.start for visit in VISITS}
    for draw in DRAWS:
        _clinic_draw(record, draw, starts.get(draw.day))
    for day in RIVERSIDE:
        _riverside_draw(record, *day)
    _urine(record)
    _single(record)


def _clinic_draw(record: Record, draw: Draw, visit: str | None) -> None:
    zone = visit[19:] if visit else ("-05:00" if "-04" <= draw.day[4:7] <= "-10" else "-06:00")
    moment = datetime.fromisoformat(visit) + timedelta(minutes=32) if visit else datetime.fromisoformat(
        f"{draw.day}T08:{round(25 + record.jitter(draw.day, 20)):02d}:00{zone}")  # fmt: skip
    at, issued = moment.isoformat(), (moment + timedelta(hours=5, minutes=18)).isoformat()
    encounter = record.ref("Encounter", encounter_key(draw.day)) if visit else None
    laboratory = place("lab")

    def put(name: str, test: Analyte, value: float, comment: str | None = None) -> str:
        return record.result(
            f"{draw.day} {name}", test, value, at, issued=issued, encounter=encounter, by=laboratory, comment=comment
        )

    def around(name: str, middle: float, spread: float) -> float:
        return middle + record.jitter(f"{draw.day} {name}", spread)

    comment = draw.comment or None
    formula, filtration = egfr(draw.creatinine, draw.day)
    panel = [
        put("na", SODIUM, draw.sodium or around("na", 139, 2)),
        put("k", POTASSIUM, draw.potassium, comment),
        put("cl", CHLORIDE, around("cl", 103, 2)),
        put("co2", BICARBONATE, around("co2", 25 if draw.creatinine < 1.9 else 23, 1.4)),
        put("bun", UREA, around("bun", 10.5 + draw.creatinine * 11, 3)),
        put("cr", CREATININE, draw.creatinine),
        put("egfr", formula, filtration),
        put("glu", GLUCOSE, around("glu", (draw.a1c or 8.0) * 20, 24)),
        put("ca", CALCIUM, around("ca", 9.4, 0.3)),
    ]
    record.report(f"{draw.day} bmp", Code("Basic metabolic panel"), at, issued, panel, laboratory)
    if draw.a1c is not None:
        put("a1c", A1C, draw.a1c)
    if draw.uacr is not None:
        put("uacr", UACR, draw.uacr)
    for group, table in (("lipids", LIPIDS), ("liver", LIVER), ("blood", BLOOD)):
        if group in draw.extras:
            drop = 0.9 if group == "blood" and draw.day >= "2024-06-01" else 0.0
            results = [
                put(name, test, around(name, middle - (drop if name == "hgb" else 0.0), spread))
                for name, (test, middle, spread) in table.items()
            ]
            names = {"lipids": "Lipid panel", "liver": "Hepatic function panel", "blood": "Complete blood count"}
            record.report(f"{draw.day} {group}", Code(names[group]), at, issued, results, laboratory)
    if "minerals" in draw.extras:
        put("phos", PHOSPHATE, around("phos", 3.6, 0.3))
        put("pth", PTH, around("pth", 34 + 22 * (draw.creatinine - 1.3), 6))
    if "urate" in draw.extras:
        put("urate", URATE, around("urate", 6.3, 0.4))
    if "magnesium" in draw.extras:
        put("mg", MAGNESIUM, 1.9)


def _riverside_draw(
    record: Record, at: str, creatinine: int, potassium: float, glucose: float, urea: float, uacr: int | None
) -> None:
    issued = (datetime.fromisoformat(at) + timedelta(hours=22)).isoformat()
    day, laboratory = at[:10], place("riverside")
    values: list[tuple[str, Analyte, float]] = [
        ("na", SODIUM, 138 + record.jitter(f"{day} rvs na", 1.4)),
        ("k", POTASSIUM, potassium),
        ("cl", CHLORIDE, 104 + record.jitter(f"{day} rvs cl", 1.4)),
        ("co2", BICARBONATE, 23 + record.jitter(f"{day} rvs co2", 0.9)),
        ("urea", SI_UREA, urea),
        ("cr", SI_CREATININE, creatinine),
        ("glu", SI_GLUCOSE, glucose),
    ]
    if uacr is not None:
        values.append(("uacr", SI_UACR, uacr))
    results = [
        record.result(f"{day} rvs {name}", test, value, at, issued=issued, by=laboratory)
        for name, test, value in values
    ]
    record.report(f"{day} rvs", Code("CHEM 7 (RVS)"), at, issued, results, laboratory)


def _urine(record: Record) -> None:
    glucose = _test("Glucose [Presence] in Urine by Test strip", "5792-7", "", "", 0, None, None)
    protein = _test("Protein [Presence] in Urine by Test strip", "20454-5", "", "", 0, None, None)
    esterase = _test("Leukocyte esterase [Presence] in Urine by Test strip", "5799-2", "", "", 0, None, None)
    nitrite = _test("Nitrite [Presence] in Urine by Test strip", "5802-4", "", "", 0, None, None)
    blood = _test("Hemoglobin [Presence] in Urine by Test strip", "5794-3", "", "", 0, None, None)
    culture = _test("Bacteria identified in Urine by Culture", "630-4", "", "", 0, None, None)
    strips = {
        "2021-06-17T11:50:00-05:00": ("Negative", "1+", "Negative", "Negative", "Negative"),
        "2024-06-12T17:52:00-05:00": ("3+", "2+", "Small", "Negative", "Negative"),
        "2025-08-14T09:55:00-05:00": ("Trace", "3+", "Negative", "Negative", "Negative"),
        "2026-03-05T17:15:00-06:00": ("Trace", "3+", "Negative", "Negative", "Negative"),
    }
    for at, values in strips.items():
        for test, value in zip((glucose, protein, esterase, nitrite, blood), values, strict=True):
            record.result(f"{at} {test.code.code}", test, value, at, by=place("lab"))
    record.result(
        "2024-06-12 culture", culture, "Mixed urogenital flora, <10,000 CFU/mL. Not significant.",
        "2024-06-12T17:52:00-05:00", issued="2024-06-14T09:20:00-05:00", by=place("lab"),
    )  # fmt: skip


def _single(record: Record) -> None:
    lab = place("lab")
    record.result("2021-06-10 tsh", TSH, 2.14, "2021-06-10T08:31:00-05:00", by=lab)
    record.result("2025-08-14 psa", PSA, 1.1, "2025-08-14T09:58:00-05:00", by=lab)
    record.result("2024-10-15 ferritin", FERRITIN, 118, "2024-10-15T16:54:00-05:00", by=lab)
    record.result("2021-06-10 spep", Analyte(Code("Protein electrophoresis, serum"), "", ""),
                  "No monoclonal protein. Free light chain ratio within the renal range.", "2021-06-10T08:31:00-05:00",
                  issued="2021-06-14T15:00:00-05:00", by=lab)  # fmt: skip
    record.result("2021-06-10 hbsag", Analyte(Code("Hepatitis B virus surface antigen"), "", ""), "Non-reactive",
                  "2021-06-10T08:31:00-05:00", by=lab)  # fmt: skip
    record.result("2021-06-10 hcv", Analyte(Code("Hepatitis C virus antibody"), "", ""), "Non-reactive",
                  "2021-06-10T08:31:00-05:00", by=lab)  # fmt: skip
    smoking = Analyte(Code("Tobacco smoking status", "72166-2", LOINC), "", "")
    alcohol = Analyte(Code("Alcohol use"), "", "")
    for year in ("2019-02-14", "2021-06-17", "2024-03-20", "2026-03-05"):
        record.result(f"{year} smoking", smoking, "Former smoker, quit 2008", year, category="social-history")
        record.result(f"{year} alcohol", alcohol, "1 to 2 drinks on weekends", year, category="social-history")
