CREATE TABLE IF NOT EXISTS customer_usage (
  sku         TEXT NOT NULL,
  customer_id TEXT NOT NULL,
  units       INTEGER NOT NULL,
  PRIMARY KEY (sku, customer_id)
) WITHOUT ROWID;

DROP INDEX IF EXISTS orders_customer_status;

CREATE INDEX orders_customer_status ON orders (customer_id, status, expires_at);
