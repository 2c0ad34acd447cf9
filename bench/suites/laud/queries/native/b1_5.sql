select
    count(*)
from
    lineitem
where
    lineitem.l_shipdate <= DATE '1996-06-14'
and
    lineitem.l_returnflag = 'R'
and
    lineitem.l_linestatus = 'F'
