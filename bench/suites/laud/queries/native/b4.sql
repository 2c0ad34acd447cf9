select count(*)
from
    orders,
    lineitem
where
    orders.o_orderdate >= DATE '1994-10-14'
        and orders.o_orderdate < DATE '1995-01-12'
        and lineitem.l_orderkey = orders.o_orderkey
        and lineitem.l_commitdate < lineitem.l_receiptdate
        and orders.o_orderpriority = '1-URGENT'
