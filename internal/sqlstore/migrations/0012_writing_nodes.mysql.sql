CREATE TABLE IF NOT EXISTS writing_nodes (
  node     VARCHAR(255) NOT NULL,
  instance VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  seen_at  BIGINT NOT NULL,
  PRIMARY KEY (node, instance)
) ENGINE=InnoDB;
