-- Orders that are not paid in time are cancelled, and what they had reserved goes back into stock: once, whatever crashes meanwhile.
-- The order and its deadline are one transaction; so are its cancellation and the end of the job.
--
--   psql -f docs/examples/orders.sql $DATABASE
--   curl -X PUT localhost:7070/v1/types/order.unpaid -H 'content-type: application/json'
--        -d '{"handler":{"kind":"sql","function":"shop.cancel_unpaid"}}'
--   (The node's database role must be no superuser: scripts/roles.sql makes such roles.)
--   psql -c "SELECT shop.place('order-4711', 'teapot', 2, interval '15 minutes')" $DATABASE

CREATE SCHEMA shop;
CREATE TABLE shop.stock (item text PRIMARY KEY, n integer NOT NULL CHECK (n >= 0));
CREATE TABLE shop.orders (
  id           text PRIMARY KEY,
  item         text NOT NULL REFERENCES shop.stock,
  quantity     integer NOT NULL,
  deadline     bigint,       -- the job that cancels it
  paid_at      timestamptz,
  cancelled_at timestamptz
);

-- An order, what it reserves, and its deadline.
CREATE FUNCTION shop.place(id text, item text, quantity integer, pay_within interval) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE shop.stock s SET n = s.n - place.quantity WHERE s.item = place.item;
  INSERT INTO shop.orders (id, item, quantity, deadline)
  VALUES (place.id, place.item, place.quantity, tocsin.create_job('order.unpaid', place.id, clock_timestamp() + pay_within));
END $$;

-- A payment; false when it comes too late. Whichever of the two locks the order first decides.
CREATE FUNCTION shop.pay(id text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  deadline bigint;
BEGIN
  UPDATE shop.orders o SET paid_at = clock_timestamp() WHERE o.id = pay.id AND o.cancelled_at IS NULL RETURNING o.deadline INTO deadline;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  PERFORM tocsin.cancel_job(deadline);  -- not needed, but why fire for nothing
  RETURN true;
END $$;

-- The deadline has passed. Nothing here asks whether it was called before: it is not, for a job that is done.
CREATE FUNCTION shop.cancel_unpaid(job tocsin.job) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  order_id   text := job.biz_id;  -- job.biz_id itself has the collation "C": compared with it, an index in another is not used
  given_back record;
BEGIN
  UPDATE shop.orders o SET cancelled_at = clock_timestamp() WHERE o.id = order_id AND o.paid_at IS NULL
  RETURNING o.item, o.quantity INTO given_back;
  IF FOUND THEN
    UPDATE shop.stock s SET n = s.n + given_back.quantity WHERE s.item = given_back.item;
  END IF;
  RETURN NULL;  -- done
END $$;
REVOKE EXECUTE ON FUNCTION shop.cancel_unpaid FROM PUBLIC;

-- All that the function needs, and nothing of Tocsin's own.
GRANT USAGE ON SCHEMA shop TO tocsin_handler;
GRANT EXECUTE ON FUNCTION shop.cancel_unpaid TO tocsin_handler;
GRANT SELECT, UPDATE ON shop.orders, shop.stock TO tocsin_handler;
