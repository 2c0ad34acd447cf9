select sum(lineitem.l_extendedprice*(1-lineitem.l_discount))
from
    customer,
    orders,
    lineitem,
    supplier,
    nation,
    region
where
    customer.c_custkey = orders.o_custkey
    and lineitem.l_orderkey = orders.o_orderkey
    and lineitem.l_suppkey = supplier.s_suppkey
    and customer.c_nationkey = supplier.s_nationkey
    and supplier.s_nationkey = nation.n_nationkey
    and nation.n_regionkey = region.r_regionkey
    and region.r_name = 'ASIA'
    and orders.o_orderdate >= DATE '1997-07-09'
    and orders.o_orderdate < DATE '1998-07-04'
    and nation.n_name = 'JAPAN'
