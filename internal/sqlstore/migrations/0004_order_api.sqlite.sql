ALTER TABLE orders ADD COLUMN reason TEXT NOT NULL DEFAULT '';

CREATE INDEX IF NOT EXISTS orders_customer ON orders (customer_id, id);

CREATE INDEX IF NOT EXISTS orders_customer_status ON orders (customer_id, status);

ALTER TABLE skus ADD COLUMN purchase_limit INTEGER NOT NULL DEFAULT 0;

CREATE INDEX IF NOT EXISTS ledger_order ON ledger (order_id);

CREATE TABLE IF NOT EXISTS idempotency_keys (
  customer_id TEXT NOT NULL,
  route       TEXT NOT NULL,
  idem_key    TEXT NOT NULL,
  hash        BLOB NOT NULL,
  status      INTEGER NOT NULL,
  location    TEXT NOT NULL,
  body        BLOB NOT NULL,
  created_at  INTEGER NOT NULL,
  PRIMARY KEY (customer_id, route, idem_key)
);

CREATE INDEX IF NOT EXISTS idempotency_keys_created ON idempotency_keys (created_at);
