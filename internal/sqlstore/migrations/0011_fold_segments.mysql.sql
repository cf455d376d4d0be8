START TRANSACTION;

UPDATE skus SET strategy = 'conditional' WHERE segments > 0;

SELECT g.sku FROM sku_segments g JOIN skus s ON s.sku = g.sku AND s.segments > 0 AND s.strategy = 'conditional' FOR UPDATE;

UPDATE skus SET
  on_hand = on_hand + (SELECT COALESCE(SUM(g.on_hand), 0) FROM sku_segments g WHERE g.sku = skus.sku),
  reserved = reserved + (SELECT COALESCE(SUM(g.reserved), 0) FROM sku_segments g WHERE g.sku = skus.sku),
  version = version + (SELECT COALESCE(SUM(g.version), 0) FROM sku_segments g WHERE g.sku = skus.sku),
  segments = 0
WHERE segments > 0 AND strategy = 'conditional';

DELETE g FROM sku_segments g JOIN skus s ON s.sku = g.sku WHERE s.segments = 0;

COMMIT;

ALTER TABLE sku_segments ADD CONSTRAINT segments_are_folded CHECK (segment < 1);
