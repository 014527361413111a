-- Columns of a bulk operation b, in the order in which bulk_from() reads them.
b.bulk_id, b.action, b.state, b.filter, b.biz_id, b.type_id, b.from_time, b.to_time, b.death_reason, b.action_time,
b.delay_us, b.spread_us, b.rate_per_s, b.reason, b.actor, b.matched, b.changed, b.is_stop_requested, b.started_at,
b.finished_at, b.error
