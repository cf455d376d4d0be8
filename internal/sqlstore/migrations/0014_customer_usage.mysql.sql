CREATE TABLE IF NOT EXISTS customer_usage (
  sku         VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  customer_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  units       BIGINT NOT NULL,
  PRIMARY KEY (sku, customer_id)
) ENGINE=InnoDB;

ALTER TABLE orders DROP INDEX orders_customer_status, ADD INDEX orders_customer_status (customer_id, status, expires_at);
