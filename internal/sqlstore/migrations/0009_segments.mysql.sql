ALTER TABLE skus ADD COLUMN segments INT NOT NULL DEFAULT 0;

CREATE TABLE IF NOT EXISTS sku_segments (
  sku      VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  segment  INT NOT NULL,
  on_hand  BIGINT NOT NULL,
  reserved BIGINT NOT NULL,
  version  BIGINT NOT NULL,
  PRIMARY KEY (sku, segment)
) ENGINE=InnoDB;
