select
    sum(lineitem.l_extendedprice*(1-lineitem.l_discount))
from
    lineitem
where
    lineitem.l_shipdate <= DATE '1996-06-14'
and
    lineitem.l_returnflag = 'R'
and
    lineitem.l_linestatus = 'F'
