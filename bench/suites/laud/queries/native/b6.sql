select
    sum(lineitem.l_extendedprice * lineitem.l_discount)
from
    lineitem
where
    lineitem.l_shipdate >= DATE '1994-01-02'
    and lineitem.l_shipdate < DATE '1994-12-28'
    and lineitem.l_discount between 0.09 - 0.01
                                and 0.09 + 0.01
    and lineitem.l_quantity < 24
