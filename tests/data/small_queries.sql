-- One query a line. Lines that start with -- are headings.
-- columns and expressions
SELECT * FROM person
SELECT id, name FROM person
SELECT p.* FROM person AS p
SELECT id + 1, id - 1, id * 2, id / 2, id // 2, id % 4 FROM person
SELECT -id, -balance, -height FROM person
SELECT id / 0, id // 0, id % 0, height / 0, balance / 0, balance % 0 FROM person
SELECT balance + 1, balance * 2, balance * balance, balance - 0.5, balance / 3 FROM person
SELECT balance + height, balance * height, height / balance FROM person
SELECT age + balance, age * height, age - 0.25 FROM person
SELECT height = height, height > 1, height < 1, height <> 1.65 FROM person
SELECT id, age = 36, age <> 36, age < 36, age <= 36, age > 36, age >= 36 FROM person
SELECT balance = 0.1, balance = 0.1e0, balance > 0, balance < height FROM person
SELECT name = 'Ada', name < 'a', name >= 'D' FROM person
SELECT active, NOT active, active AND age > 30, active OR age > 30 FROM person
SELECT active IS TRUE, active IS NOT TRUE, active IS FALSE, active IS NULL, active IS NOT NULL FROM person
SELECT id FROM person WHERE active AND NOT (age > 30)
SELECT id IS NOT DISTINCT FROM age, id IS DISTINCT FROM age FROM person
SELECT 1, 'a', 2.5, 1e3, NULL, TRUE, DATE '2020-01-01'
SELECT 1 + 1 AS two, 2 AS "weird name", 'it''s' AS quoted
SELECT id AS "ID", id AS b FROM person
-- functions
SELECT abs(age), abs(balance), abs(height), sign(balance), sign(height) FROM person
SELECT floor(height), ceil(height), round(height), round(height, 1), floor(balance), ceil(balance), round(balance, 1) FROM person
SELECT exp(age), ln(age), sqrt(age), exp(height), ln(height), sqrt(height) FROM person
SELECT power(age, 2), power(height, 0.5), age ^ 2 FROM person
SELECT least(age, 20), greatest(age, 20), least(height, 1.0), greatest(height, 1.0), greatest(age, balance) FROM person
SELECT coalesce(age, 0), coalesce(name, city, 'none'), nullif(age, 36), coalesce(age, 0.5), ifnull(city, '?') FROM person
SELECT lower(name), upper(name), length(name), substring(name, 1, 2), substring(name FROM 2), left(name, 2), right(name, 1) FROM person
SELECT name || '-' || city, trim(city), ltrim(city), rtrim(city), replace(name, 'e', 'E') FROM person
SELECT starts_with(name, 'E'), contains(name, 'a') FROM person
SELECT name LIKE 'E%', name LIKE '%d%', name NOT LIKE '_', name LIKE 'Eve_1', city LIKE '' FROM person
SELECT name ILIKE 'D%', name NOT ILIKE '%A%' FROM person
SELECT note LIKE '100%', note LIKE '%!_%', note LIKE 'a_b' FROM visit
-- case, in, between
SELECT CASE WHEN age > 30 THEN 'old' WHEN age > 10 THEN 'young' END FROM person
SELECT CASE WHEN age > 30 THEN 1 ELSE 0.5 END, CASE WHEN active THEN height ELSE balance END FROM person
SELECT CASE city WHEN 'Riga' THEN 1 WHEN 'Oslo' THEN 2 ELSE 3 END FROM person
SELECT CASE age WHEN NULL THEN 1 ELSE 2 END FROM person
SELECT if(age > 30, 'old', 'young') FROM person
SELECT id IN (1, 2, 3), id IN (1, NULL), id NOT IN (1, 2), id NOT IN (1, NULL) FROM person
SELECT name IN ('Ada', 'Bob'), height IN (1.65, 'NaN'::DOUBLE), balance IN (0.1, 100.5) FROM person
SELECT id FROM person WHERE age BETWEEN 17 AND 36
SELECT id FROM person WHERE age NOT BETWEEN 17 AND 36
SELECT id FROM person WHERE height BETWEEN 0 AND 2
-- dates
SELECT born + 1, born - 1, born - DATE '2000-01-01' FROM person
SELECT day + (vid - 10)::INTEGER, day - pid FROM visit
SELECT born + INTERVAL '1' MONTH, born - INTERVAL '1' YEAR, seen + INTERVAL '90' MINUTE, INTERVAL '2' DAY + born FROM person
SELECT extract(year FROM born), extract(month FROM born), extract(day FROM born), extract(dow FROM born), extract(doy FROM born), extract(quarter FROM born) FROM person
SELECT extract(hour FROM seen), extract(minute FROM seen), extract(second FROM seen), year(seen), month(seen) FROM person
SELECT date_trunc('month', born), date_trunc('year', seen), date_trunc('week', born), date_trunc('hour', seen) FROM person
SELECT date_diff('day', born, DATE '2020-01-01'), date_diff('month', born, DATE '2020-01-01'), date_diff('year', born, DATE '2020-01-01') FROM person
SELECT id FROM person WHERE born >= DATE '1984-12-10' AND born < DATE '1984-12-10' + INTERVAL '6' YEAR
SELECT id FROM person WHERE born = '1984-12-10'
SELECT id FROM person WHERE seen > DATE '2020-01-01'
SELECT id FROM person WHERE seen >= '2020-02-29 00:00:01'
SELECT id FROM person WHERE born BETWEEN '1980-01-01' AND '1999-12-31'
-- casts
SELECT CAST(age AS VARCHAR), CAST(height AS VARCHAR), CAST(balance AS VARCHAR), CAST(born AS VARCHAR), CAST(active AS VARCHAR) FROM person
SELECT CAST(balance AS INTEGER), CAST(balance AS DOUBLE), CAST(balance AS DECIMAL(10, 1)), CAST(age AS DECIMAL(10, 2)) FROM person
SELECT CAST(active AS INTEGER), CAST(age AS BOOLEAN), CAST(seen AS DATE), CAST(born AS TIMESTAMP) FROM person
SELECT TRY_CAST(name AS INTEGER), TRY_CAST(height AS INTEGER), TRY_CAST(note AS DOUBLE) FROM person, visit WHERE id = pid
SELECT '12'::INTEGER + 1, '1.5'::DECIMAL(4, 2), '2020-01-01'::DATE
-- where
SELECT id FROM person WHERE TRUE
SELECT id FROM person WHERE FALSE
SELECT id FROM person WHERE NULL
SELECT id FROM person WHERE age > 30 OR city = 'Oslo'
SELECT id FROM person WHERE NOT (age > 30 OR city = 'Oslo')
SELECT id FROM person WHERE (age > 30) = active
SELECT id FROM person WHERE 1 = 1 AND age IS NULL
-- joins
SELECT * FROM person, visit
SELECT p.id, v.vid FROM person p, visit v WHERE p.id = v.pid
SELECT p.id, v.vid FROM person p JOIN visit v ON p.id = v.pid
SELECT p.id, v.vid FROM person p JOIN visit v ON p.id = v.pid AND v.cost > 5
SELECT p.id, v.vid FROM person p JOIN visit v ON p.id < v.pid
SELECT p.id, v.vid FROM person p LEFT JOIN visit v ON p.id = v.pid
SELECT p.id, v.vid FROM person p LEFT JOIN visit v ON p.id = v.pid AND p.active
SELECT p.id, v.vid FROM person p LEFT JOIN visit v ON p.id = v.pid WHERE v.vid IS NULL
SELECT p.id, v.vid FROM person p LEFT JOIN visit v ON p.id = v.pid AND v.note = 'ok' WHERE p.age > 10
SELECT p.id, n.label FROM person p LEFT JOIN nothing n ON p.id = n.id
SELECT p.id, n.label FROM person p JOIN nothing n ON TRUE
SELECT p.id, n.one FROM person p LEFT JOIN (SELECT id, 1 AS one FROM nothing) n ON n.id = p.id
SELECT p.id, v.one, v.two FROM person p LEFT JOIN (SELECT pid, 'x' AS one, coalesce(note, '-') AS two FROM visit) v ON v.pid = p.id
SELECT p.id, v.flag IS NULL FROM person p LEFT JOIN (SELECT pid, cost > 6 AS flag FROM visit WHERE rating > 2) v ON v.pid = p.id
SELECT p.id, v.vid, n.id FROM person p LEFT JOIN visit v ON p.id = v.pid LEFT JOIN nothing n ON n.id = v.vid
SELECT p.id, w.vid FROM person p LEFT JOIN (visit v JOIN visit w ON v.pid = w.pid AND v.vid < w.vid) ON p.id = v.pid
SELECT a.id, b.id FROM person a JOIN person b ON a.height = b.height
SELECT a.id, b.id FROM person a JOIN person b ON a.city = b.city AND a.id < b.id
SELECT p.name, v.cost FROM person p CROSS JOIN visit v WHERE p.balance = v.cost
SELECT id, vid FROM person JOIN visit ON id = pid WHERE rating > 2
SELECT a.id, b.vid, c.vid FROM person a, visit b, visit c WHERE a.id = b.pid AND b.pid = c.pid AND b.vid <> c.vid
SELECT x.id, y.id FROM person x JOIN person y USING (id)
SELECT id FROM person x JOIN (SELECT pid AS id FROM visit) y USING (id)
SELECT v.vid, p.id FROM visit v LEFT JOIN person p ON p.id = v.pid AND p.age > v.rating
SELECT a.vid, b.vid FROM visit a JOIN visit b ON a.day = b.day + 14
SELECT p.id, v.pid FROM person p JOIN visit v ON p.id IS NOT DISTINCT FROM v.pid
-- grouping
SELECT count(*) FROM person
SELECT count(*), count(age), count(DISTINCT age), sum(age), avg(age), min(age), max(age) FROM person
SELECT sum(balance), avg(balance), min(balance), max(balance), sum(DISTINCT balance) FROM person
SELECT count(height), min(height), max(height) FROM person
SELECT sum(rating), avg(rating) FROM visit WHERE vid <> 13
SELECT sum(height), avg(height), var_samp(height) FROM person
SELECT var_samp(age), var_pop(age), stddev(age), stddev_pop(age), variance(balance) FROM person
SELECT min(name), max(name), min(born), max(born), min(seen), max(seen) FROM person
SELECT count(*), sum(amount), avg(amount), min(label) FROM nothing
SELECT label, count(*) FROM nothing GROUP BY label
SELECT city, count(*) FROM person GROUP BY city
SELECT city, active, count(*), sum(balance) FROM person GROUP BY city, active
SELECT height, count(*) FROM person GROUP BY height
SELECT age > 30, count(*) FROM person GROUP BY age > 30
SELECT age > 30 AS senior, count(*) FROM person GROUP BY senior
SELECT city AS town, count(*) AS n FROM person GROUP BY 1 ORDER BY 2 DESC, 1
SELECT city, count(*) FROM person GROUP BY city HAVING count(*) > 1
SELECT city, sum(balance) AS total FROM person GROUP BY city HAVING sum(balance) > 10 AND city IS NOT NULL
SELECT city FROM person GROUP BY city HAVING max(age) > 40
SELECT city, count(*) * 2 + 1, sum(balance) / count(*), avg(age) - min(age) FROM person GROUP BY city
SELECT lower(city), count(DISTINCT name) FROM person GROUP BY lower(city)
SELECT extract(year FROM born) AS y, count(*) FROM person GROUP BY y ORDER BY y NULLS FIRST
SELECT sum(CASE WHEN active THEN 1 ELSE 0 END), sum(CASE WHEN active THEN balance END) FROM person
SELECT sum(balance * (1 - 0.05)), sum(balance) * 0.5 FROM person
SELECT p.city, count(v.vid), sum(v.cost) FROM person p LEFT JOIN visit v ON p.id = v.pid GROUP BY p.city
SELECT p.city, count(DISTINCT v.pid) FROM person p JOIN visit v ON p.id = v.pid GROUP BY p.city
SELECT count(*) FROM person WHERE FALSE
SELECT city, count(*) FROM person WHERE FALSE GROUP BY city
SELECT count(*) FROM person HAVING count(*) > 100
SELECT max(n) FROM (SELECT city, count(*) AS n FROM person GROUP BY city) t
SELECT count(*) FILTER (WHERE age > 30), sum(balance) FILTER (WHERE active) FROM person
-- distinct, order, limit
SELECT DISTINCT city FROM person
SELECT DISTINCT city, age FROM person
SELECT DISTINCT height FROM person
SELECT DISTINCT count(*) FROM person GROUP BY city
SELECT DISTINCT city FROM person ORDER BY city
SELECT id FROM person ORDER BY id
SELECT id, age FROM person ORDER BY age DESC, id
SELECT id, age FROM person ORDER BY age NULLS FIRST, id DESC
SELECT id, height FROM person ORDER BY height DESC NULLS LAST, id
SELECT id FROM person ORDER BY balance * -1 NULLS FIRST, id
SELECT name AS id FROM person ORDER BY id
SELECT id, name FROM person ORDER BY 2, 1
SELECT id FROM person ORDER BY lower(name) DESC NULLS LAST, id
SELECT id FROM person ORDER BY id LIMIT 3
SELECT id FROM person ORDER BY id LIMIT 3 OFFSET 2
SELECT id FROM person ORDER BY id OFFSET 7
SELECT id FROM person ORDER BY id LIMIT 0
SELECT city, count(*) AS n FROM person GROUP BY city ORDER BY n DESC, city NULLS FIRST LIMIT 2
SELECT city FROM person GROUP BY city ORDER BY sum(balance) DESC NULLS LAST, city
SELECT * FROM (SELECT id FROM person ORDER BY id LIMIT 4) t WHERE id > 2
-- set operations
SELECT id FROM person UNION SELECT pid FROM visit
SELECT id FROM person UNION ALL SELECT pid FROM visit
SELECT id FROM person INTERSECT SELECT pid FROM visit
SELECT id FROM person INTERSECT ALL SELECT pid FROM visit
SELECT id FROM person EXCEPT SELECT pid FROM visit
SELECT id FROM person EXCEPT ALL SELECT pid FROM visit
SELECT pid FROM visit EXCEPT ALL SELECT id FROM person
SELECT age FROM person UNION SELECT balance FROM person
SELECT age FROM person UNION ALL SELECT height FROM person
SELECT born FROM person UNION SELECT seen FROM person
SELECT id, name FROM person UNION SELECT vid, note FROM visit ORDER BY 1, 2
SELECT id FROM person UNION ALL SELECT pid FROM visit UNION ALL SELECT id FROM nothing
SELECT id FROM person EXCEPT SELECT pid FROM visit EXCEPT SELECT 5
SELECT height FROM person INTERSECT SELECT rating FROM visit
SELECT NULL AS x UNION SELECT id FROM person
SELECT count(*) FROM (SELECT id FROM person UNION SELECT pid FROM visit) t
(SELECT id FROM person ORDER BY id LIMIT 2) UNION ALL (SELECT vid FROM visit ORDER BY vid LIMIT 1)
-- subqueries
SELECT (SELECT max(cost) FROM visit)
SELECT id, (SELECT count(*) FROM visit) FROM person
SELECT id, (SELECT count(*) FROM visit WHERE pid = id) FROM person
SELECT id, (SELECT sum(cost) FROM visit v WHERE v.pid = p.id AND v.rating > p.height) FROM person p
SELECT id, (SELECT label FROM nothing) FROM person
SELECT id FROM person WHERE age > (SELECT avg(age) FROM person)
SELECT id FROM person p WHERE balance > (SELECT avg(cost) FROM visit v WHERE v.pid = p.id)
SELECT id FROM person WHERE id IN (SELECT pid FROM visit)
SELECT id FROM person WHERE id NOT IN (SELECT pid FROM visit)
SELECT id FROM person WHERE id NOT IN (SELECT pid FROM visit WHERE pid IS NOT NULL)
SELECT id FROM person WHERE id NOT IN (SELECT id FROM nothing)
SELECT id IN (SELECT pid FROM visit), id NOT IN (SELECT pid FROM visit) FROM person
SELECT id FROM person p WHERE city IN (SELECT city FROM person q WHERE q.id <> p.id)
SELECT id FROM person p WHERE EXISTS (SELECT 1 FROM visit v WHERE v.pid = p.id)
SELECT id FROM person p WHERE NOT EXISTS (SELECT * FROM visit v WHERE v.pid = p.id)
SELECT id FROM person p WHERE EXISTS (SELECT * FROM visit v WHERE v.pid = p.id AND v.cost > 10 AND p.age > 1)
SELECT id FROM person p WHERE EXISTS (SELECT 1 FROM visit v WHERE v.pid = p.id AND NOT EXISTS (SELECT 1 FROM visit w WHERE w.pid = p.id AND w.vid > v.vid))
SELECT id FROM person WHERE EXISTS (SELECT * FROM nothing)
SELECT city, count(*) FROM person GROUP BY city HAVING count(*) >= (SELECT count(*) / 8 FROM visit)
SELECT city, (SELECT count(*) FROM visit) AS visits FROM person GROUP BY city
SELECT CASE WHEN EXISTS (SELECT 1 FROM visit v WHERE v.pid = p.id) THEN 'yes' ELSE 'no' END FROM person p
SELECT id FROM person p WHERE balance = (SELECT max(balance) FROM person q WHERE q.city = p.city)
SELECT id FROM person p WHERE (SELECT count(*) FROM visit v WHERE v.pid = p.id) > 1
-- derived tables and WITH
SELECT t.n + 1 FROM (SELECT count(*) AS n FROM person) t
SELECT a.city, a.n, b.m FROM (SELECT city, count(*) AS n FROM person GROUP BY city) a JOIN (SELECT city, max(age) AS m FROM person GROUP BY city) b ON a.city = b.city
WITH adults AS (SELECT * FROM person WHERE age >= 18) SELECT count(*) FROM adults
WITH a AS (SELECT id, age FROM person), b AS (SELECT id FROM a WHERE age > 30) SELECT a.id FROM a JOIN b ON a.id = b.id
WITH v AS (SELECT pid, sum(cost) AS total FROM visit GROUP BY pid) SELECT p.name, v.total FROM person p LEFT JOIN v ON v.pid = p.id
WITH v AS (SELECT pid, sum(cost) AS total FROM visit GROUP BY pid) SELECT pid FROM v WHERE total = (SELECT max(total) FROM v)
WITH a AS (SELECT id FROM person) SELECT x.id, y.id FROM a x, a y WHERE x.id < y.id
WITH t(k, c) AS (SELECT city, count(*) FROM person GROUP BY city) SELECT k FROM t WHERE c > 1
SELECT x FROM (SELECT id * 2 AS x FROM person) WHERE x > 4
SELECT x + y FROM (SELECT id AS x, age AS y FROM person WHERE age > 0) t WHERE x < 5
SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS t(n, s)
SELECT p.id FROM person p JOIN (VALUES ('Riga'), ('Oslo')) AS c(city) ON p.city = c.city
SELECT count(*) FROM (SELECT DISTINCT city, age FROM person) t
