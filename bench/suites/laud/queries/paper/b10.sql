select
sum(lineitem.l_extendedprice * (1 - lineitem.l_discount))
from
        customer,
        orders,
        lineitem,
        nation
where
    customer.c_custkey = orders.o_custkey
    and lineitem.l_orderkey = orders.o_orderkey
    and orders.o_orderdateG >= 183.3
    and orders.o_orderdateG < 183.3 + 3
    and lineitem.l_returnflag = 'R'
    and customer.c_nationkey = nation.n_nationkey
    and customer.c_custkey = 64
    and nation.n_name = 'CANADA'
