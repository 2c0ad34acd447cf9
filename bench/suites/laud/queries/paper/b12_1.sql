select
    count(*)
from
    orders,
    lineitem
where
    orders.o_orderkey = lineitem.l_orderkey
    and (orders.o_orderpriority <> '1-URGENT'
        or orders.o_orderpriority <> '2-HIGH')
    and lineitem.l_shipmode in ('TRUCK', 'SHIP')
    and lineitem.l_commitdateG < lineitem.l_receiptdateG
    and lineitem.l_shipdateG < lineitem.l_commitdateG
    and lineitem.l_receiptdateG >= 183.3
    and lineitem.l_receiptdateG < 183.3 + 12
