select
    count(*)
from
    orders,
    lineitem
where
    orders.o_orderkey = lineitem.l_orderkey
    and (orders.o_orderpriority = '1-URGENT'
        or orders.o_orderpriority = '2-HIGH')
    and lineitem.l_shipmode in ('TRUCK', 'SHIP')
    and lineitem.l_commitdate < lineitem.l_receiptdate
    and lineitem.l_shipdate < lineitem.l_commitdate
        and lineitem.l_receiptdate >= DATE '1995-01-21'
        and lineitem.l_receiptdate < DATE '1996-01-16'
