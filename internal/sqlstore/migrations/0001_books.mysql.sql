CREATE TABLE IF NOT EXISTS skus (
  sku         VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  strategy    VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  on_hand     BIGINT NOT NULL,
  reserved    BIGINT NOT NULL,
  version     BIGINT NOT NULL,
  fence       BIGINT NOT NULL,
  fence_owner VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  created_at  BIGINT NOT NULL
) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS orders (
  id          CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  customer_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  status      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  payment_id  VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  created_at  BIGINT NOT NULL,
  expires_at  BIGINT NOT NULL
) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS order_lines (
  order_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  sku      VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  quantity BIGINT NOT NULL,
  PRIMARY KEY (order_id, sku),
  KEY order_lines_sku (sku)
) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS ledger (
  id         BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  sku        VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  order_id   CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  movement   VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  quantity   BIGINT NOT NULL,
  on_hand    BIGINT NOT NULL,
  reserved   BIGINT NOT NULL,
  fence      BIGINT NOT NULL,
  instance   VARCHAR(64) NOT NULL,
  created_at BIGINT NOT NULL,
  KEY ledger_sku (sku)
) ENGINE=InnoDB;
