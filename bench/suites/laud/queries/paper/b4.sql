select count(*)
from
    orders,
    lineitem
where
    orders.o_orderdateG >= 180
        and orders.o_orderdateG < 180 + 3
        and lineitem.l_orderkey = orders.o_orderkey
        and lineitem.l_commitdateG < lineitem.l_receiptdateG
        and orders.o_orderpriority = '1-URGENT'
