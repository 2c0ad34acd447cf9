"""Twenty-five questions about the hospital of tests/data/hospital.sql, as its analysts would ask them."""

QUESTIONS = (
    "SELECT count(*) FROM patients",
    "SELECT sex, count(*) FROM patients GROUP BY sex",
    "SELECT smoker, avg(weight) FROM patients WHERE weight BETWEEN 30 AND 200 GROUP BY smoker",
    (
        "SELECT extract(year FROM registered) AS y, count(*) FROM patients WHERE registered >= '2020-01-01' "
        "AND registered < '2021-01-01' GROUP BY 1"
    ),
    "SELECT kind, count(*) FROM visits GROUP BY kind ORDER BY 2 DESC",
    'SELECT w."Name", count(*) FROM visits v JOIN wards w ON w.ward_id = v.ward_id GROUP BY w."Name"',
    'SELECT avg("Cost") FROM visits',
    "SELECT sum(\"Cost\") FROM visits WHERE admitted >= TIMESTAMPTZ '2024-03-01 00:00+02'",
    "SELECT count(DISTINCT patient_id) FROM visits WHERE kind = 'emergency'::visit_kind",
    "SELECT extract(hour FROM arrival) AS h, count(*) FROM visits GROUP BY 1",
    "SELECT count(*) FROM visits WHERE arrival BETWEEN '08:00' AND TIME '12:30'",
    "SELECT notes->'triage'->>'color' AS color, count(*) FROM visits GROUP BY 1",
    "SELECT avg((notes->>'severity')::int) FROM visits WHERE (notes->>'severity')::int BETWEEN 0 AND 10",
    "SELECT count(*) FROM visits WHERE raw->>'severity' = '3'",
    "SELECT avg(extract(epoch FROM stay) / 86400) FROM visits WHERE extract(epoch FROM stay) BETWEEN 0 AND 8640000",
    "SELECT count(*) FROM patients WHERE 'nuts' = ANY(allergies)",
    "SELECT avg(cardinality(allergies)) FROM patients WHERE cardinality(allergies) BETWEEN 0 AND 10",
    "SELECT code, count(*) FROM diagnoses GROUP BY code",
    'SELECT d.name, sum(p."Dose") FROM "Prescriptions" p JOIN drugs d ON d.drug_id = p."DrugId" GROUP BY d.name',
    "SELECT paid, count(*), sum(amount) FROM invoices GROUP BY paid",
    "SELECT code, avg(value) FROM lab.results WHERE value BETWEEN 0 AND 500 GROUP BY code",
    "SELECT count(*) FROM emergencies",
    "SELECT count(DISTINCT patient_id) FROM lab.abnormal WHERE code = 'hb'",
    (
        "SELECT date_trunc('month', admitted) AS m, count(*) FROM visits WHERE admitted >= '2024-01-01' "
        "AND admitted < '2024-09-01' GROUP BY 1 ORDER BY 1"
    ),
    "SELECT count(*) FROM (SELECT patient_id FROM visits GROUP BY patient_id HAVING count(*) >= 3) AS often",
    "SELECT allergy, count(*) FROM patients p, unnest(p.allergies) AS a(allergy) GROUP BY allergy",
)
