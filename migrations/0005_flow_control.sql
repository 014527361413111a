-- What each node has been granted of the limits of each type. limit_kind: 0 running (permits of max_running), 1 rate, 2 catch_up (both in
-- thousandths). DO NOT CHANGE: stored.
CREATE TABLE tocsin.permit (
  type_id    integer NOT NULL,
  limit_kind smallint NOT NULL,
  node_id    bigint NOT NULL,
  granted    integer NOT NULL CHECK (granted >= 0),
  need       integer NOT NULL,      -- what the node could use at once; -1: it leaves
  used       integer NOT NULL,      -- for people
  request_no bigint NOT NULL,       -- of the node's last request: an older one that arrives late changes nothing
  renewed_at timestamptz NOT NULL,
  ttl        interval NOT NULL,     -- the grant holds so long after renewed_at
  lease      interval NOT NULL,     -- and what the node has started under it may go on so long after that
  PRIMARY KEY (type_id, limit_kind, node_id)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

CREATE FUNCTION tocsin.permits_of(kind tocsin.biz_type, limit_kind smallint) RETURNS integer
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE limit_kind
  WHEN 0 THEN coalesce(kind.max_running, 0)
  WHEN 1 THEN CASE WHEN kind.rate_per_s IS NULL THEN 0 ELSE 1000 END
  ELSE CASE WHEN kind.catch_up ->> 'rate_per_s' IS NULL THEN 0 ELSE 1000 END END;

-- One node gives back what it does not hold any more and takes, of what is free, up to what it wants. Answers what every node has of
-- the limits asked for: one row per request (1, 2, ...) and node. The rows of the types are locked first, in order, and every statement
-- after that has a snapshot of its own: so no two nodes add up the same grants.
CREATE FUNCTION tocsin.renew_permits(node bigint, number bigint, ttl_us bigint, type_ids integer[], kinds smallint[], helds integer[],
                                     wanteds integer[], needs integer[], useds integer[], leases_us bigint[])
RETURNS TABLE (ord bigint, total integer, node_id bigint, granted integer, need integer, used integer, is_expired boolean, db_now timestamptz)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  now_ timestamptz;
BEGIN
  PERFORM 1 FROM tocsin.biz_type t WHERE t.type_id = ANY (type_ids) ORDER BY t.type_id FOR NO KEY UPDATE;
  now_ := clock_timestamp();
  -- The clock was set back: what was granted before counts from now on.
  UPDATE tocsin.permit p SET renewed_at = now_ WHERE p.type_id = ANY (type_ids) AND p.renewed_at > now_;
  DELETE FROM tocsin.permit p
   WHERE p.type_id = ANY (type_ids) AND p.node_id <> renew_permits.node AND p.renewed_at + p.ttl + p.lease < now_;
  INSERT INTO tocsin.permit AS p (type_id, limit_kind, node_id, granted, need, used, request_no, renewed_at, ttl, lease)
  SELECT r.type_id, r.kind, renew_permits.node,
         b.base + greatest(0, least(r.wanted - b.base, tocsin.permits_of(t, r.kind) - b.others - b.base)),
         r.need, r.used, number, now_, ttl_us * interval '1 microsecond',
         -- What was started under a longer lease goes on.
         greatest(r.lease_us * interval '1 microsecond', b.lease_left)
    FROM unnest(type_ids, kinds, helds, wanteds, needs, useds, leases_us) r (type_id, kind, held, wanted, need, used, lease_us)
    JOIN tocsin.biz_type t ON t.type_id = r.type_id
   CROSS JOIN LATERAL (
     SELECT least(r.held, coalesce(sum(o.granted) FILTER (WHERE o.node_id = renew_permits.node), 0))::integer AS base,
            coalesce(sum(o.granted) FILTER (WHERE o.node_id <> renew_permits.node), 0)::integer AS others,
            max(o.lease - (now_ - o.renewed_at)) FILTER (WHERE o.node_id = renew_permits.node) AS lease_left
       FROM tocsin.permit o WHERE o.type_id = r.type_id AND o.limit_kind = r.kind) b
  ON CONFLICT (type_id, limit_kind, node_id) DO UPDATE
    SET granted = excluded.granted, need = excluded.need, used = excluded.used, request_no = excluded.request_no,
        renewed_at = excluded.renewed_at, ttl = excluded.ttl, lease = excluded.lease
  WHERE p.request_no < excluded.request_no;
  RETURN QUERY
  SELECT r.ord, coalesce(tocsin.permits_of(t, r.kind), 0), p.node_id, p.granted, p.need, p.used, p.renewed_at + p.ttl < now_, now_
    FROM unnest(type_ids, kinds) WITH ORDINALITY r (type_id, kind, ord)
    LEFT JOIN tocsin.biz_type t ON t.type_id = r.type_id
    LEFT JOIN tocsin.permit p ON p.type_id = r.type_id AND p.limit_kind = r.kind
   ORDER BY r.ord, p.node_id;
END $$;
