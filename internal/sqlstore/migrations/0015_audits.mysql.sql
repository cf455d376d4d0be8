CREATE TABLE IF NOT EXISTS audits (
  sku        VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  ledger_id  BIGINT NOT NULL,
  version    BIGINT NOT NULL,
  stocked    BIGINT NOT NULL,
  on_hand    BIGINT NOT NULL,
  reserved   BIGINT NOT NULL,
  fence      BIGINT NOT NULL,
  checked_at BIGINT NOT NULL
) ENGINE=InnoDB;

ALTER TABLE orders ADD INDEX orders_status (status, expires_at);
