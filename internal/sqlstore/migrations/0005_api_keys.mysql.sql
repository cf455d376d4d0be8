CREATE TABLE IF NOT EXISTS api_keys (
  prefix      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  hash        BINARY(32) NOT NULL,
  customer_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  admin       TINYINT NOT NULL,
  name        VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  created_at  BIGINT NOT NULL,
  expires_at  BIGINT NOT NULL,
  revoked_at  BIGINT NOT NULL
) ENGINE=InnoDB;
