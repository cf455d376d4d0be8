ALTER TABLE orders ADD COLUMN reason VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '';

ALTER TABLE orders ADD INDEX orders_customer (customer_id, id);

ALTER TABLE orders ADD INDEX orders_customer_status (customer_id, status);

ALTER TABLE skus ADD COLUMN purchase_limit BIGINT NOT NULL DEFAULT 0;

ALTER TABLE ledger ADD INDEX ledger_order (order_id);

CREATE TABLE IF NOT EXISTS customers (
  customer_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY
) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS idempotency_keys (
  customer_id VARBINARY(64) NOT NULL,
  route       VARBINARY(128) NOT NULL,
  idem_key    VARBINARY(255) NOT NULL,
  hash        VARBINARY(32) NOT NULL,
  status      SMALLINT NOT NULL,
  location    VARBINARY(255) NOT NULL,
  body        MEDIUMBLOB NOT NULL,
  created_at  BIGINT NOT NULL,
  PRIMARY KEY (customer_id, route, idem_key),
  KEY idempotency_keys_created (created_at)
) ENGINE=InnoDB;
