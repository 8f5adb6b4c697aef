"""The lists of the record, untidy as lists are: problems, medicines, allergies, vaccines, procedures, orders."""

# ruff: noqa: E501 (one row of a table stands in one line)

from __future__ import annotations

from tasks.casebook.charting import CVX, ICD10CM, RXNORM, SNOMED, Code, Record
from tasks.casebook.nephrology_finerenone_011.people import clinician
from tasks.casebook.nephrology_finerenone_011.visits import encounter_key

ALDER, WILLOW, BIRCH = clinician("alder"), clinician("willow"), clinician("birch")


def _icd(code: str, text: str) -> Code:
    return Code(text, code, ICD10CM)


def _drug(text: str, ingredient: str = "") -> Code:
    return Code(text, ingredient, RXNORM if ingredient else "")


def add_problems(record: Record) -> None:
    """The problem list: duplicates, stages that were never updated, and no word of August 2024."""
    rows: list[tuple[Code, str | None, str, str, str | None]] = [
        (_icd("E11.9", "Type 2 diabetes mellitus without complications"), "2011", "2019-02-14", "active", None),
        (_icd("E11.22", "Type 2 diabetes mellitus with diabetic chronic kidney disease"), "2019", "2021-06-18", "active", None),
        (_icd("E11.21", "Type 2 diabetes mellitus with diabetic nephropathy"), None, "2021-03-11", "active", None),
        (_icd("Z79.4", "Long term (current) use of insulin"), "2016", "2019-02-14", "active", None),
        (_icd("N18.2", "Chronic kidney disease, stage 2 (mild)"), "2019", "2019-05-20", "inactive", None),
        (_icd("N18.31", "Chronic kidney disease, stage 3a"), "2020-08-20", "2020-12-03", "active", None),
        (_icd("N18.32", "Chronic kidney disease, stage 3b"), "2024-02-13", "2024-02-13", "active", None),
        (_icd("I10", "Essential (primary) hypertension"), "2009", "2019-02-14", "active", None),
        (_icd("I12.9", "Hypertensive chronic kidney disease with stage 1 through stage 4 chronic kidney disease, or "
              "unspecified chronic kidney disease"), None, "2021-06-18", "active", None),
        (_icd("E78.5", "Hyperlipidemia, unspecified"), "2012", "2019-02-14", "active", None),
        (_icd("E78.2", "Mixed hyperlipidemia"), None, "2020-01-16", "active", None),
        (_icd("E66.9", "Obesity, unspecified"), None, "2019-02-14", "active", None),
        (_icd("G47.33", "Obstructive sleep apnea (adult) (pediatric)"), "2014", "2019-02-14", "active", None),
        (_icd("M10.9", "Gout, unspecified"), "2015", "2019-02-14", "active", None),
        (_icd("M17.11", "Unilateral primary osteoarthritis, right knee"), None, "2019-05-20", "active", None),
        (_icd("N40.1", "Benign prostatic hyperplasia with lower urinary tract symptoms"), None, "2025-08-15", "active", None),
        (_icd("E11.3293", "Type 2 diabetes mellitus with mild nonproliferative diabetic retinopathy without macular "
              "edema, bilateral"), "2019-11-05", "2019-11-07", "active", None),
        (_icd("E11.3393", "Type 2 diabetes mellitus with moderate nonproliferative diabetic retinopathy without "
              "macular edema, bilateral"), "2025-06-03", "2025-06-05", "active", None),
        (_icd("I49.1", "Atrial premature depolarization"), "2024-03-20", "2024-03-21", "active", None),
        (_icd("E87.6", "Hypokalemia"), "2022-06-23", "2022-06-23", "resolved", "2022-07-07"),
        (_icd("N39.0", "Urinary tract infection, site not specified"), "2024-06-12", "2024-06-12", "resolved", "2024-06-20"),
        (_icd("N39.0", "Urinary tract infection, site not specified"), "2024-08", "2024-09-04", "resolved", "2024-09-04"),
        (_icd("K57.30", "Diverticulosis of large intestine without perforation or abscess without bleeding"), "2025-02-25",
         "2025-02-25", "active", None),
        (_icd("Z86.010", "Personal history of colonic polyps"), "2025-02-25", "2025-03-04", "active", None),
        (_icd("J01.90", "Acute sinusitis, unspecified"), "2023-02-08", "2023-02-08", "resolved", "2023-02-22"),
    ]  # fmt: skip
    for number, (code, onset, recorded, status, abated) in enumerate(rows):
        record.problem(
            f"{number} {code.code} {recorded}", code, onset=onset, recorded=recorded, status=status, abated=abated,
            by=WILLOW if recorded == "2024-09-04" else ALDER,
            note="Per patient report, hospital out of state." if recorded == "2024-09-04" else None,
        )  # fmt: skip


def add_medicines(record: Record) -> None:
    """Every prescription since 2019; two that were stopped still stand as active."""

    def at(day: str) -> str | None:
        return record.ref("Encounter", encounter_key(day))

    def put(
        key: str,
        drug: Code,
        sig: str,
        written: str,
        *,
        status: str = "stopped",
        dose: tuple[float, str] | None = None,
        why: str | None = None,
        stopped_for: str | None = None,
        by: str = ALDER,
        days: int | None = 90,
        refills: int = 3,
        note: str | None = None,
        reported: bool = False,
        visit: str | None = None,
    ) -> None:
        record.prescription(
            key, drug, sig, written, by=by, status=status, dose=dose, why=why, stopped_for=stopped_for,
            encounter=at(visit) if visit else None, days=days, refills=refills, note=note, reported=reported,
        )  # fmt: skip

    losartan, metformin = _drug("losartan", "52175"), _drug("metformin", "6809")
    glargine, atorvastatin = _drug("insulin glargine", "274783"), _drug("atorvastatin", "83367")
    changed = "Dose changed"
    put(
        "losartan-50",
        losartan,
        "losartan 50 mg tablet, 1 tablet by mouth daily",
        "2019-02-14T11:20:00-06:00",
        dose=(50, "mg"),
        why="Hypertension",
        stopped_for=changed,
        visit="2019-02-14",
    )
    put(
        "losartan-100-2019",
        losartan,
        "losartan 100 mg tablet, 1 tablet by mouth daily",
        "2019-02-19T08:20:00-06:00",
        status="completed",
        dose=(100, "mg"),
        why="Hypertension, albuminuria",
    )
    put(
        "losartan-100-2022",
        losartan,
        "losartan 100 mg tablet, 1 tablet by mouth daily",
        "2022-12-15T14:45:00-06:00",
        status="completed",
        dose=(100, "mg"),
        why="Hypertension, albuminuria",
        by=WILLOW,
        visit="2022-12-15",
    )
    put(
        "losartan-100",
        losartan,
        "losartan 100 mg tablet, 1 tablet by mouth daily",
        "2025-10-28T16:58:00-05:00",
        status="active",
        dose=(100, "mg"),
        why="Diabetic kidney disease, hypertension",
        visit="2025-10-28",
    )
    put(
        "metformin-1000",
        metformin,
        "metformin 1000 mg tablet, 1 tablet by mouth twice daily with meals",
        "2019-02-14T11:21:00-06:00",
        dose=(1000, "mg"),
        why="Type 2 diabetes",
        stopped_for=changed,
        visit="2019-02-14",
    )
    put(
        "metformin-500",
        metformin,
        "metformin 500 mg tablet, 1 tablet by mouth twice daily with meals",
        "2024-02-13T16:25:00-06:00",
        status="active",
        dose=(500, "mg"),
        why="Type 2 diabetes",
        visit="2024-02-13",
    )
    for units, written, visit in (
        (30, "2019-02-14T11:22:00-06:00", "2019-02-14"),
        (34, "2020-05-07T11:05:00-05:00", "2020-05-07"),
        (36, "2020-08-20T16:22:00-05:00", "2020-08-20"),
        (40, "2022-06-23T16:21:00-05:00", "2022-06-23"),
        (36, "2023-05-09T16:56:00-05:00", "2023-05-09"),
        (34, "2023-08-15T16:12:00-05:00", "2023-08-15"),
        (28, "2024-05-14T16:02:00-05:00", "2024-05-14"),
        (30, "2024-10-15T16:50:00-05:00", "2024-10-15"),
        (34, "2025-01-21T16:24:00-06:00", "2025-01-21"),
        (36, "2025-04-22T16:13:00-05:00", "2025-04-22"),
    ):
        put(
            f"glargine-{written[:10]}",
            glargine,
            f"insulin glargine 100 units/mL pen, {units} units subcutaneously nightly",
            written,
            dose=(units, "units"),
            why="Type 2 diabetes",
            stopped_for=changed,
            visit=visit,
        )
    put(
        "glargine-now",
        glargine,
        "insulin glargine 100 units/mL pen, 38 units subcutaneously nightly",
        "2025-10-28T17:00:00-05:00",
        status="active",
        dose=(38, "units"),
        why="Type 2 diabetes",
        visit="2025-10-28",
    )
    put(
        "glipizide",
        _drug("glipizide", "4821"),
        "glipizide 10 mg tablet, 1 tablet by mouth daily",
        "2019-02-14T11:23:00-06:00",
        dose=(10, "mg"),
        why="Type 2 diabetes",
        stopped_for="Hypoglycemia",
        visit="2019-02-14",
    )
    put(
        "atorvastatin-20",
        atorvastatin,
        "atorvastatin 20 mg tablet, 1 tablet by mouth nightly",
        "2019-02-14T11:24:00-06:00",
        dose=(20, "mg"),
        stopped_for=changed,
        visit="2019-02-14",
    )
    put(
        "atorvastatin-40",
        atorvastatin,
        "atorvastatin 40 mg tablet, 1 tablet by mouth nightly",
        "2025-10-28T17:01:00-05:00",
        status="active",
        dose=(40, "mg"),
        why="Hyperlipidemia",
        visit="2025-10-28",
    )
    put(
        "diltiazem",
        _drug("diltiazem ER 120 mg 24 hr capsule", "3443"),
        "1 capsule by mouth daily",
        "2023-05-09T16:58:00-05:00",
        status="active",
        dose=(120, "mg"),
        why="Palpitations",
        visit="2023-05-09",
    )
    put(
        "amlodipine",
        _drug("amlodipine", "17767"),
        "amlodipine 10 mg tablet, 1 tablet by mouth daily",
        "2024-03-20T10:42:00-05:00",
        status="active",
        dose=(10, "mg"),
        why="Hypertension",
        by=BIRCH,
        visit="2024-03-20",
    )
    put(
        "chlorthalidone-12",
        _drug("chlorthalidone", "2409"),
        "chlorthalidone 25 mg tablet, one-half tablet by mouth daily",
        "2019-05-20T15:38:00-05:00",
        dose=(12.5, "mg"),
        stopped_for=changed,
        visit="2019-05-20",
    )
    put(
        "chlorthalidone-25",
        _drug("chlorthalidone", "2409"),
        "chlorthalidone 25 mg tablet, 1 tablet by mouth daily",
        "2020-08-20T16:24:00-05:00",
        dose=(25, "mg"),
        stopped_for="Lightheadedness, rising creatinine",
        visit="2020-08-20",
    )
    put(
        "potassium",
        _drug("potassium chloride 20 mEq extended release tablet", "8591"),
        "1 tablet by mouth daily",
        "2022-12-15T14:48:00-06:00",
        status="active",
        why="Hypokalemia",
        by=WILLOW,
        visit="2022-12-15",
    )
    put(
        "empagliflozin",
        _drug("empagliflozin", "1545653"),
        "empagliflozin 10 mg tablet, 1 tablet by mouth every morning",
        "2023-05-09T16:52:00-05:00",
        dose=(10, "mg"),
        why="Diabetic kidney disease",
        stopped_for="UTI (per patient)",
        visit="2023-05-09",
        note="Discontinued 09/04/2024 at medication reconciliation.",
    )
    put(
        "allopurinol",
        _drug("allopurinol", "519"),
        "allopurinol 100 mg tablet, 1 tablet by mouth daily",
        "2025-10-28T17:02:00-05:00",
        status="active",
        dose=(100, "mg"),
        why="Gout",
        visit="2025-10-28",
    )
    put(
        "aspirin",
        _drug("aspirin", "1191"),
        "aspirin 81 mg tablet, 1 tablet by mouth daily",
        "2019-02-14T11:26:00-06:00",
        status="active",
        dose=(81, "mg"),
        reported=True,
    )
    put(
        "vitamin-d",
        _drug("cholecalciferol", "2418"),
        "vitamin D3 2000 units by mouth daily",
        "2024-10-15T16:51:00-05:00",
        status="active",
        reported=True,
    )
    put(
        "acetaminophen",
        _drug("acetaminophen", "161"),
        "acetaminophen 500 mg tablet, 1 to 2 tablets every 6 hours as needed for knee pain, no more than 3 g a day",
        "2019-05-20T15:40:00-05:00",
        status="active",
        reported=True,
    )
    put(
        "tamsulosin",
        _drug("tamsulosin", "77492"),
        "tamsulosin 0.4 mg capsule, 1 capsule by mouth nightly",
        "2025-08-14T10:05:00-05:00",
        status="active",
        dose=(0.4, "mg"),
        why="Benign prostatic hyperplasia",
        by=clinician("larch"),
        visit="2025-08-14",
    )
    put(
        "cephalexin",
        _drug("cephalexin", "2231"),
        "cephalexin 500 mg capsule, 1 capsule by mouth twice daily for 5 days",
        "2024-06-12T17:58:00-05:00",
        status="completed",
        dose=(500, "mg"),
        why="Possible urinary tract infection",
        by=clinician("cedar"),
        days=5,
        refills=0,
        visit="2024-06-12",
    )
    put(
        "doxycycline",
        _drug("doxycycline", "3640"),
        "doxycycline 100 mg capsule, 1 capsule by mouth twice daily for 7 days",
        "2023-02-08T08:48:00-06:00",
        status="completed",
        dose=(100, "mg"),
        why="Sinusitis",
        by=WILLOW,
        days=7,
        refills=0,
        visit="2023-02-08",
    )
    for year in range(2019, 2026):
        put(
            f"strips-{year}",
            _drug("blood glucose test strips"),
            "test fasting and as needed, up to 2 times daily",
            f"{year}-12-20T09:00:00-06:00",
            status="active" if year == 2025 else "completed",
            days=90,
        )
    put("needles", _drug("pen needles 32 gauge 4 mm"), "use nightly with insulin", "2025-10-28T17:03:00-05:00",
        status="active")  # fmt: skip


def add_allergies(record: Record) -> None:
    """The allergy list. What Gulf Community Hospital asked to be added was never added."""
    record.allergy(
        "lisinopril",
        _drug("lisinopril", "29046"),
        "2019-02-14",
        kind="intolerance",
        criticality="low",
        reaction="Cough (2013)",
        by=ALDER,
    )
    record.allergy(
        "penicillin",
        Code("Penicillin"),
        "2019-02-14",
        kind="allergy",
        criticality="low",
        reaction="Rash in childhood",
        by=ALDER,
    )
    record.allergy("latex", Code("Adhesive tape"), "2025-02-25", kind="intolerance", criticality="low",
                   reaction="Local redness", by=clinician("elm"))  # fmt: skip


def add_vaccines(record: Record) -> None:
    """Immunizations."""
    flu = Code("Influenza, injectable, quadrivalent, preservative free", "150", CVX)
    for day in ("2019-10-03", "2020-01-16", "2020-10-08", "2021-10-14", "2022-10-06", "2023-10-12"):
        record.vaccine(f"flu {day}", flu, day)
    trivalent = Code("Influenza, split virus, trivalent, preservative free", "140", CVX)
    for day in ("2024-10-15", "2025-10-28"):
        record.vaccine(f"flu {day}", trivalent, day)
    rows = (
        ("2020-01-16", Code("Pneumococcal polysaccharide PPV23", "33", CVX)),
        ("2024-10-15", Code("Pneumococcal conjugate PCV20", "216", CVX)),
        ("2021-03-04", Code("COVID-19, mRNA, LNP-S, PF, 30 mcg/0.3 mL dose", "208", CVX)),
        ("2021-03-25", Code("COVID-19, mRNA, LNP-S, PF, 30 mcg/0.3 mL dose", "208", CVX)),
        ("2021-12-09", Code("COVID-19, mRNA, LNP-S, PF, 30 mcg/0.3 mL dose", "208", CVX)),
        ("2025-10-28", Code("COVID-19 vaccine, 2025-2026 formula")),
        ("2022-03-17", Code("Tdap", "115", CVX)),
        ("2025-09-09", Code("Zoster recombinant", "187", CVX)),
        ("2025-12-02", Code("Zoster recombinant", "187", CVX)),
        ("2021-06-17", Code("Hepatitis B vaccine")),
        ("2021-12-09", Code("Hepatitis B vaccine")),
    )
    for day, code in rows:
        record.vaccine(f"{code.text} {day}", code, day)
    record.vaccine("rsv", Code("RSV vaccine"), "2026-03-05", status="not-done", why="Not eligible by age")


def add_procedures(record: Record) -> None:
    """Procedures."""
    rows = (
        ("1988", Code("Appendectomy", "80146002", SNOMED), None),
        ("2019-11-05T09:10:00-06:00", Code("Dilated retinal examination"), clinician("teasel")),
        ("2021-06-10T09:40:00-05:00", Code("Ultrasound of kidneys"), None),
        ("2024-02-13T16:15:00-06:00", Code("Electrocardiogram, 12 lead"), ALDER),
        ("2024-03-14T13:00:00-05:00", Code("Transthoracic echocardiogram"), None),
        ("2024-03-16T08:00:00-05:00", Code("Ambulatory ECG monitoring, 48 hours"), BIRCH),
        ("2025-02-25T11:05:00-06:00", Code("Colonoscopy", "73761001", SNOMED), clinician("elm")),
        ("2025-06-03T13:10:00-05:00", Code("Dilated retinal examination"), clinician("teasel")),
        ("2025-06-03T13:20:00-05:00", Code("Optical coherence tomography of retina"), clinician("teasel")),
        ("2025-08-14T09:50:00-05:00", Code("Post-void residual measurement"), clinician("larch")),
        ("2019-02-14T11:00:00-06:00", Code("Diabetic foot examination"), ALDER),
        ("2022-03-17T16:30:00-05:00", Code("Diabetic foot examination"), ALDER),
        ("2026-03-05T17:05:00-06:00", Code("Diabetic foot examination"), ALDER),
    )
    for at, code, by in rows:
        record.procedure(f"{code.text} {at[:10]}", code, at, by=by)


def add_orders(record: Record) -> None:
    """Old orders and referrals; the eye referral of March is still open."""
    spruce, larch = clinician("spruce"), clinician("larch")
    rows: tuple[tuple[str, str, str, str, str, str | None, str | None], ...] = (
        ("2019-02-14T11:28:00-06:00", "Referral to ophthalmology or optometry", "Referral", "completed", ALDER,
         "Diabetic eye exam", "2019-02-14"),
        ("2021-03-11T15:44:00-06:00", "Referral to nephrology", "Referral", "completed", ALDER,
         "Chronic kidney disease stage 3a with albuminuria", "2021-03-11"),
        ("2021-05-27T10:00:00-05:00", "Ultrasound, kidneys", "Imaging", "completed", spruce, "Chronic kidney disease", None),
        ("2021-05-27T10:02:00-05:00", "Protein electrophoresis, serum, with free light chains", "Laboratory", "completed",
         spruce, "Chronic kidney disease", None),
        ("2024-02-13T16:28:00-06:00", "Referral to cardiology", "Referral", "completed", ALDER, "Palpitations", "2024-02-13"),
        ("2024-06-12T17:50:00-05:00", "Urine culture", "Laboratory", "completed", clinician("cedar"), "Dysuria", "2024-06-12"),
        ("2024-09-04T15:20:00-05:00", "Release of information, outside hospital", "Administrative", "completed", WILLOW,
         "Hospital records 08/2024", "2024-09-04"),
        ("2025-01-21T16:26:00-06:00", "Referral to gastroenterology", "Referral", "completed", ALDER, "Screening colonoscopy",
         "2025-01-21"),
        ("2025-07-29T16:30:00-05:00", "Microalbumin/creatinine ratio, urine", "Laboratory", "completed", ALDER,
         "Diabetic kidney disease", "2025-07-29"),
        ("2025-07-29T16:31:00-05:00", "Referral to urology", "Referral", "completed", ALDER, "Urinary frequency", "2025-07-29"),
        ("2025-08-14T10:00:00-05:00", "Prostate specific antigen", "Laboratory", "completed", larch, "BPH", "2025-08-14"),
        ("2025-10-28T17:05:00-05:00", "Referral to physical therapy", "Referral", "completed", ALDER, "Right knee pain",
         "2025-10-28"),
        ("2025-10-28T17:06:00-05:00", "Medical nutrition therapy", "Referral", "active", ALDER, "Diabetes, kidney disease",
         "2025-10-28"),
        ("2026-03-05T17:20:00-06:00", "Basic metabolic panel", "Laboratory", "completed", ALDER, "Diabetic kidney disease",
         "2026-03-05"),
        ("2026-03-05T17:21:00-06:00", "Microalbumin/creatinine ratio, urine", "Laboratory", "completed", ALDER,
         "Diabetic kidney disease", "2026-03-05"),
        ("2026-03-05T17:22:00-06:00", "Diabetic eye exam, Valley Eye Care", "Referral", "active", ALDER,
         "Moderate nonproliferative retinopathy, December visit cancelled", "2026-03-05"),
        ("2026-03-06T08:25:00-06:00", "Basic metabolic panel, repeat", "Laboratory", "completed", ALDER,
         "Hemolyzed specimen", "2026-03-06"),
    )  # fmt: skip
    for written, text, category, status, by, why, visit in rows:
        record.service(
            f"{text} {written}", Code(text), written, by=by, status=status, category=category, why=why,
            encounter=record.ref("Encounter", encounter_key(visit)) if visit else None,
        )  # fmt: skip
    for day in ("2019-05-20", "2020-01-16", "2020-08-20", "2021-03-11", "2022-03-17", "2022-09-15", "2023-05-09",
                "2023-08-15", "2024-02-13", "2024-05-14", "2024-10-15", "2025-01-21", "2025-04-22", "2025-07-29",
                "2025-10-28"):  # fmt: skip
        record.service(
            f"bmp {day}", Code("Basic metabolic panel"), f"{day}T09:00:00-06:00", by=ALDER, category="Laboratory",
            why="Type 2 diabetes, chronic kidney disease", encounter=record.ref("Encounter", encounter_key(day)),
        )  # fmt: skip
