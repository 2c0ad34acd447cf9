SELECT count(*) FROM orders
SELECT count(*) AS n FROM orders WHERE o_orderdate >= DATE '1995-01-01'
SELECT sum(l_quantity), avg(l_discount) FROM lineitem WHERE l_shipmode IN ('AIR', 'RAIL')
SELECT o_orderpriority, count(*) AS n FROM orders GROUP BY o_orderpriority HAVING count(*) > 10 ORDER BY n DESC LIMIT 3
SELECT c_mktsegment, avg(c_acctbal) FROM customer GROUP BY 1
SELECT n_name, count(*) FROM customer JOIN nation ON c_nationkey = n_nationkey GROUP BY n_name
SELECT count(DISTINCT o_custkey) FROM orders
SELECT o_orderdate, count(*) FROM orders GROUP BY o_orderdate
SELECT variance(l_quantity), stddev_pop(l_quantity) FROM lineitem
SELECT sum(CASE WHEN o_orderstatus = 'F' THEN o_totalprice ELSE 0 END) FROM orders
SELECT count(*) FROM (SELECT * FROM orders UNION ALL SELECT * FROM orders) AS u
SELECT count(*) FROM (SELECT DISTINCT o_custkey FROM orders) AS u
SELECT extract(year FROM o_orderdate) AS y, sum(o_totalprice) FROM orders GROUP BY y ORDER BY y
SELECT count(*) FROM customer c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.o_custkey = c.c_custkey AND o.o_totalprice > 50)
SELECT count(*) FROM customer WHERE c_custkey IN (SELECT o_custkey FROM orders)
WITH big AS (SELECT o_custkey FROM orders WHERE o_totalprice > 1000) SELECT count(*) FROM big JOIN customer ON c_custkey = o_custkey
SELECT 100.0 * sum(l_extendedprice * (1 - l_discount)) / nullif(count(*), 0) FROM lineitem
SELECT r_name FROM region ORDER BY r_name
SELECT n_name, (SELECT r_name FROM region WHERE r_regionkey = n_regionkey) FROM nation
SELECT p_brand, max(p_retailprice), min(p_size) FROM part GROUP BY p_brand
SELECT l_returnflag, l_linestatus, count(*) FROM lineitem GROUP BY l_returnflag, l_linestatus
SELECT count(*) FROM orders o LEFT JOIN customer c ON o.o_custkey = c.c_custkey
SELECT substring(c_phone, 1, 2) AS code, count(*) FROM customer GROUP BY code
SELECT count(*) FILTER (WHERE l_tax > 0.04) FROM lineitem
SELECT n_name FROM nation INTERSECT SELECT r_name FROM region
SELECT n_name FROM nation EXCEPT ALL SELECT r_name FROM region ORDER BY 1
SELECT avg(l_quantity) + 1, abs(sum(l_tax)), round(count(*) / 7, 2) FROM lineitem
SELECT a.n - b.n FROM (SELECT count(*) AS n FROM orders) AS a, (SELECT count(*) AS n FROM customer) AS b
SELECT date_trunc('month', l_shipdate) AS m, count(*) FROM lineitem WHERE l_shipdate + INTERVAL 3 DAY < DATE '1994-01-01' GROUP BY m
SELECT greatest(c_acctbal, 0) AS b, count(*) FROM customer GROUP BY b
