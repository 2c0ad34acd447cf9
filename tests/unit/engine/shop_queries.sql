SELECT count(*) FROM orders
SELECT status, count(*) AS n, sum(total) FROM orders GROUP BY status HAVING count(*) > 10 ORDER BY n DESC LIMIT 3
SELECT avg(total), stddev(total), sum(quantity) FROM orders WHERE day >= DATE '2024-02-01' AND rate < 0.75
SELECT c.town, count(DISTINCT o.customer), avg(o.rate) FROM orders AS o JOIN customers AS c ON o.customer = c.id GROUP BY c.town
SELECT t.country, count(*) FROM customers AS c JOIN towns AS t ON c.town = t.town GROUP BY t.country ORDER BY 1
SELECT extract(month FROM day) AS m, sum(big) FROM orders GROUP BY m
SELECT count(*) FROM customers AS c WHERE EXISTS (SELECT 1 FROM orders AS o WHERE o.customer = c.id AND o.total > 50)
WITH dear AS (SELECT customer, sum(total) AS s FROM orders GROUP BY customer) SELECT count(*), avg(s) FROM dear WHERE s > 20
SELECT sum(CASE WHEN status = 'open' THEN total WHEN status = 'paid' THEN -total ELSE 0 END) / nullif(count(*), 0) FROM orders
SELECT town, people FROM towns WHERE people > 100000 ORDER BY people DESC
SELECT a.n - b.n FROM (SELECT count(*) AS n FROM orders) AS a, (SELECT count(*) AS n FROM customers) AS b
SELECT age, count(*) FROM customers GROUP BY age
