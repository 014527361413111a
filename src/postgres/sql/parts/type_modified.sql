-- Of a changed type t: forward, whatever the clock does, for mirrors tell versions apart by it.
greatest(clock_timestamp(), t.gmt_modified + interval '1 microsecond')
