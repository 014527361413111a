-- Events, lateness and targets since recent_begin, of the rows of a group.
coalesce(sum(s.created), 0)::bigint AS created, coalesce(sum(s.done), 0)::bigint AS done,
  coalesce(sum(s.dead), 0)::bigint AS dead, coalesce(sum(s.dropped_late), 0)::bigint AS dropped_late,
  coalesce(sum(s.attempts), 0)::bigint AS attempts,
  coalesce(sum(s.retried), 0)::bigint AS retried, coalesce(sum(s.started), 0)::bigint AS n,
  coalesce(sum(s.missed), 0)::bigint AS missed, max(s.max_ms) AS max_ms,
  date_part('epoch', statement_timestamp() - {{recent_begin}}) AS seconds,
  tocsin.merge_histograms(tocsin.histogram_concat(h.buckets), '{}') AS buckets,
  (min(t.slo ->> 'lateness_ms'))::double precision AS target_ms,
  (min(t.slo ->> 'share'))::double precision AS target_share
{{report_slots grain = 1}} AND s.slot >= {{recent_begin}}
