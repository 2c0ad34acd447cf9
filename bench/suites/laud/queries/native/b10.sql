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
    and orders.o_orderdate >= DATE '1995-01-21'
    and orders.o_orderdate < DATE '1995-04-21'
    and lineitem.l_returnflag = 'R'
    and customer.c_nationkey = nation.n_nationkey
    and customer.c_custkey = 64
    and nation.n_name = 'CANADA'
