"""Does a table look as if it were about people? A guess from names, for proposals and warnings only.

Nothing is decided by it: what is protected and what is public is what the owner wrote.
"""

from __future__ import annotations

import re

from secant.schema.catalog import Table

PEOPLE = frozenset({
    "account", "adult", "applicant", "attendee", "author", "beneficiary", "borrower", "caller", "candidate",
    "caregiver", "child", "citizen", "client", "colleague", "contact", "contractor", "customer", "defendant",
    "doctor", "donor", "driver", "employee", "family", "guardian", "guest", "household", "individual",
    "inhabitant", "inmate", "insured", "investor", "learner", "member", "minor", "nurse", "offender", "owner",
    "parent", "participant", "passenger", "patient", "patron", "payer", "payee", "pensioner", "people",
    "person", "personnel", "physician", "player", "policyholder", "practitioner", "prisoner", "profile",
    "provider", "pupil", "recipient", "renter", "resident", "respondent", "rider", "seller", "staff", "student",
    "subject", "subscriber", "supporter", "suspect", "taxpayer", "teacher", "tenant", "traveler", "user",
    "victim", "visitor", "volunteer", "voter", "worker",
})  # fmt: skip
STAFF = frozenset({
    "caregiver", "colleague", "contractor", "doctor", "driver", "employee", "nurse", "personnel", "physician",
    "practitioner", "provider", "seller", "staff", "teacher", "worker",
})  # fmt: skip
DETAILS = frozenset({
    "birth", "birthdate", "birthday", "birthname", "born", "dob", "email", "firstname", "fullname", "gender",
    "givenname", "lastname", "maidenname", "mobile", "nationality", "passport", "phone", "religion", "salary",
    "sex", "ssn", "surname",
})  # fmt: skip
IRREGULAR = {"children": "child", "families": "family", "persons": "person"}
_TURN = re.compile(r"(?<=[a-z])(?=[^\W\d_a-z])")  # where camelCase begins a word
_LETTERS = re.compile(r"[^\W\d_]+")


def about_people(table: Table) -> str | None:
    """Give the name that says so, of the table or of a column, or None.

    >>> from secant.schema.types import DATE, TEXT
    >>> about_people(Table("Patients", (("id", TEXT),)))
    'Patients'
    >>> about_people(Table("t", (("date_of_birth", DATE),)))
    'date_of_birth'
    >>> about_people(Table("stays", (("patient_no", TEXT),)))
    'patient_no'
    >>> about_people(Table("wards", (("name", TEXT),)))
    """
    if _name_parts(table.name) & PEOPLE:
        return table.name
    for column, _ in table.columns:
        if _name_parts(column) & DETAILS or column.lower().replace("_", "") in DETAILS:
            return column
    return person_column(table)


def person_column(table: Table) -> str | None:
    """Give the first column that is named after people, or None."""
    columns = (c for c, _ in table.columns if _name_parts(c) & PEOPLE or _id_tokens(c) & PEOPLE)
    return next(columns, None)


def named_after_people(table: Table) -> bool:
    """Whether the last word of a table's name is a word for people: `patients`, not `patient_visits`."""
    return _last_word(table) in PEOPLE


def is_staff(table: Table) -> bool:
    """Whether it is named after people who serve others: beside a table of the others, they come second."""
    return _last_word(table) in STAFF


def _last_word(table: Table) -> str:
    parts = _parts(table.name)
    return parts[-1] if parts else ""


def _name_parts(name: str) -> frozenset[str]:
    return frozenset(_parts(name))


def _parts(name: str) -> list[str]:
    return [_singular(word.lower()) for word in _LETTERS.findall(_TURN.sub("_", name))]


def _id_tokens(name: str) -> frozenset[str]:
    """Read `patientid` as `patient`."""
    return frozenset({name.lower().removesuffix("id"), name.lower().removesuffix("key")})


def _singular(word: str) -> str:
    return IRREGULAR.get(word, word.removesuffix("s") if not word.endswith("ss") else word)
