-- Three small tables with everything that bites: NULLs, duplicates, NaN, infinities, an empty table.
CREATE TABLE person (
    id INTEGER, name VARCHAR, city VARCHAR, age INTEGER, height DOUBLE, balance DECIMAL(12, 2),
    born DATE, active BOOLEAN, seen TIMESTAMP
);
INSERT INTO person VALUES
    (1, 'Ada', 'Riga', 36, 1.65, 100.50, DATE '1984-12-10', true, TIMESTAMP '2020-01-01 10:30:15'),
    (2, 'Bob', 'Riga', NULL, 1.80, -20.25, DATE '1990-02-28', false, TIMESTAMP '2020-02-29 23:59:59'),
    (3, 'Cyd', NULL, 17, 'NaN', 0.00, DATE '2003-07-04', NULL, NULL),
    (4, 'dan', 'Tartu', 64, 'Infinity', 9999.99, NULL, true, TIMESTAMP '2019-12-31 00:00:00'),
    (5, NULL, 'Tartu', 36, NULL, NULL, DATE '1984-12-10', false, TIMESTAMP '2021-06-15 12:00:00'),
    (6, 'Eve_1', 'Oslo', 0, -0.5, 12.34, DATE '2020-02-29', NULL, TIMESTAMP '2020-02-29 00:00:01'),
    (6, 'Eve_1', 'Oslo', 0, -0.5, 12.34, DATE '2020-02-29', NULL, TIMESTAMP '2020-02-29 00:00:01'),
    (7, '', 'riga ', -3, 'NaN', 0.10, DATE '1969-12-31', true, NULL),
    (NULL, 'Zoë', 'Oslo', 50, 0.0, 0.20, DATE '1970-01-01', false, TIMESTAMP '1970-01-01 00:00:00');

CREATE TABLE visit (
    vid BIGINT, pid INTEGER, day DATE, cost DECIMAL(8, 2), rating DOUBLE, note VARCHAR
);
INSERT INTO visit VALUES
    (10, 1, DATE '2020-01-01', 10.00, 4.5, 'ok'),
    (11, 1, DATE '2020-01-15', 20.50, 3.0, 'very good'),
    (12, 1, DATE '2020-03-01', NULL, NULL, NULL),
    (13, 2, DATE '2020-02-29', 5.25, 'NaN', 'bad'),
    (14, 2, DATE '2019-12-31', 5.25, 1.0, '100% ok'),
    (15, 3, NULL, 0.00, 0.0, 'ok'),
    (16, 6, DATE '2020-02-29', 7.77, -1.5, 'a_b'),
    (17, 9, DATE '2021-01-31', 300.00, 5.0, 'nobody'),
    (18, NULL, DATE '2020-01-01', 1.00, 2.5, 'ok'),
    (18, NULL, DATE '2020-01-01', 1.00, 2.5, 'ok');

CREATE TABLE nothing (id BIGINT, label VARCHAR, amount DOUBLE);
