"""The shadow of a source with several schemas, and with arrays whose elements are no tables there."""

from secant.policy.check import fit_policy
from secant.policy.file import read_policy
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.service.postgres.shadow import schema_text

POLICY = """
[tables.patients]
key = ["id"]
[tables."lab.results"]
references = { patient = "patients.id" }
[protections.people]
kind = "unit"
unit = "patients.id"
epsilon = 1
"""


def test_tables_stand_in_their_schemas_and_elements_nowhere():
    known = catalog(
        Table("patients", (("id", t.UUID),), (("id",),), parts=(("tags", "array of TEXT"),)),
        Table("lab.results", (("patient", t.UUID),)),
        schemas=("public", "lab"),
    )
    policy = fit_policy(read_policy(POLICY), known)
    assert "unnest(patients.tags)" in policy.tables
    told = schema_text(known, policy)
    assert 'CREATE TABLE "lab"."results" ("patient" text)' in told
    assert 'ALTER TABLE "lab"."results" ADD FOREIGN KEY' in told
    assert "unnest" not in told
