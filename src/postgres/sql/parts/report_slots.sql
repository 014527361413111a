-- The slots of a grain (1: quarters of an hour, 2: hours, 3: days) with their histograms of lateness.
FROM tocsin.report_slot s
JOIN tocsin.biz_type t USING (type_id)
LEFT JOIN tocsin.report_histogram h
  ON h.kind = 0 AND h.grain = {{grain}} AND h.slot = s.slot AND h.type_id = s.type_id
WHERE s.grain = {{grain}}
