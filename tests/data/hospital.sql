-- A hospital as PostgreSQL users keep one: nine tables in two schemas, views, and types of PostgreSQL's own.
CREATE SCHEMA lab;
CREATE TYPE sex AS ENUM ('female', 'male', 'other');
CREATE TYPE visit_kind AS ENUM ('emergency', 'planned', 'day');
CREATE DOMAIN percent AS smallint CHECK (VALUE BETWEEN 0 AND 100);

CREATE TABLE wards (ward_id smallint PRIMARY KEY, "Name" text NOT NULL UNIQUE, beds integer, intensive boolean);
COMMENT ON TABLE wards IS 'Where patients lie';
CREATE TABLE drugs (drug_id integer PRIMARY KEY, name varchar(40), atc char(7));
CREATE TABLE staff (staff_id uuid PRIMARY KEY, surname text, ward_id smallint REFERENCES wards, hired date);
CREATE TABLE patients (
    patient_id uuid PRIMARY KEY, sex sex, birth date, postcode char(5), smoker boolean, weight numeric,
    registered timestamptz, photo bytea, allergies text[], contact jsonb, mother uuid REFERENCES patients
);
COMMENT ON COLUMN patients.weight IS 'in kilograms';
CREATE TABLE visits (
    visit_id uuid PRIMARY KEY, patient_id uuid NOT NULL REFERENCES patients, ward_id smallint REFERENCES wards,
    staff_id uuid REFERENCES staff, kind visit_kind, admitted timestamptz, discharged timestamptz, arrival time,
    stay interval, notes jsonb, raw json, "Cost" numeric(10, 2), insured boolean
);
CREATE TABLE diagnoses (visit_id uuid REFERENCES visits, rank smallint, code text, certainty percent,
                        PRIMARY KEY (visit_id, rank));
CREATE TABLE "Prescriptions" ("Id" bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                              "VisitId" uuid REFERENCES visits, "DrugId" integer REFERENCES drugs, "Dose" numeric);
CREATE TABLE invoices (invoice_id uuid PRIMARY KEY, patient_id uuid REFERENCES patients,
                       visit_id uuid REFERENCES visits, amount numeric, paid boolean, due date, scan bytea,
                       price money);
CREATE TABLE lab.results (result_id bigint PRIMARY KEY, visit_id uuid REFERENCES visits, code text, value numeric,
                          taken timestamp, flags integer[]);

CREATE VIEW emergencies AS SELECT * FROM visits WHERE kind = 'emergency' AND "Cost" > 0;
CREATE VIEW lab.abnormal AS
    SELECT v.patient_id, r.code, r.value FROM lab.results r JOIN visits v USING (visit_id)
    WHERE r.code IN ('hb', 'crp') AND r.value > 100;
CREATE MATERIALIZED VIEW daily AS SELECT admitted::date AS day, count(*) AS n FROM visits GROUP BY 1;

INSERT INTO wards SELECT i, 'Ward ' || chr(64 + i), 10 + i, i = 3 FROM generate_series(1, 5) AS i;
INSERT INTO drugs SELECT i, 'drug ' || i, 'A' || lpad(i::text, 6, '0') FROM generate_series(1, 8) AS i;
INSERT INTO staff SELECT md5('s' || i)::uuid, 'name ' || i, 1 + i % 5, DATE '2010-01-01' + i FROM generate_series(1, 30) AS i;
INSERT INTO patients
SELECT md5('p' || i)::uuid, (ARRAY['female', 'male', 'female', 'male', 'other'])[1 + i % 5]::sex,
       DATE '1940-01-01' + i * 7, lpad((10000 + i % 20)::text, 5, '0'), i % 4 = 0,
       CASE WHEN i % 97 = 0 THEN 'NaN'::numeric ELSE 50 + i % 60 + 0.125 END,
       TIMESTAMPTZ '2020-01-01 00:00+02' + i * INTERVAL '1 hour', decode(md5(i::text), 'hex'),
       CASE WHEN i % 3 = 0 THEN ARRAY['pollen', 'nuts'] WHEN i % 3 = 1 THEN ARRAY['nuts'] ELSE '{}' END,
       jsonb_build_object('city', (ARRAY['Tartu', 'Tallinn'])[1 + i % 2], 'floor', i % 9), NULL
FROM generate_series(1, 2000) AS i;
INSERT INTO visits
SELECT md5('v' || i)::uuid, md5('p' || (1 + i % 2000))::uuid, 1 + i % 5, md5('s' || (1 + i % 30))::uuid,
       (ARRAY['emergency', 'planned', 'day'])[1 + i % 3]::visit_kind,
       TIMESTAMPTZ '2024-01-01 00:00Z' + i * INTERVAL '1 hour',
       CASE WHEN i % 50 = 0 THEN 'infinity' ELSE TIMESTAMPTZ '2024-01-01 00:00Z' + i * INTERVAL '1 hour 3 minutes' END,
       TIME '00:00' + (i % 24) * INTERVAL '1 hour', (i % 12) * INTERVAL '1 day 2 hours',
       jsonb_build_object('severity', i % 4, 'triage', jsonb_build_object('color', (ARRAY['red', 'green'])[1 + i % 2])),
       json_build_object('severity', i % 4), 100 + i % 900, i % 7 <> 0
FROM generate_series(1, 6000) AS i;
INSERT INTO diagnoses SELECT md5('v' || i)::uuid, r, (ARRAY['I10', 'E11', 'J45', 'F32'])[1 + (i + r) % 4], (i * r) % 101
FROM generate_series(1, 6000) AS i, generate_series(1, 2) AS r WHERE (i + r) % 2 = 0;
INSERT INTO "Prescriptions" ("VisitId", "DrugId", "Dose")
SELECT md5('v' || i)::uuid, 1 + i % 8, 0.5 * (1 + i % 10) FROM generate_series(1, 5000) AS i;
INSERT INTO invoices SELECT md5('i' || i)::uuid, md5('p' || (1 + i % 2000))::uuid, md5('v' || i)::uuid, 20 + i % 480, i % 5 <> 0,
       DATE '2024-02-01' + i % 300, NULL, '12.00' FROM generate_series(1, 5500) AS i;
INSERT INTO lab.results SELECT i, md5('v' || (1 + i % 6000))::uuid, (ARRAY['hb', 'crp', 'na', 'k'])[1 + i % 4],
       i % 200, TIMESTAMP '2024-01-01 00:00' + i * INTERVAL '30 minutes', ARRAY[i % 3, i % 5]
FROM generate_series(1, 8000) AS i;
