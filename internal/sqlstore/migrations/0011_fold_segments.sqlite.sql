UPDATE skus SET
  on_hand = on_hand + (SELECT COALESCE(SUM(g.on_hand), 0) FROM sku_segments g WHERE g.sku = skus.sku),
  reserved = reserved + (SELECT COALESCE(SUM(g.reserved), 0) FROM sku_segments g WHERE g.sku = skus.sku),
  version = version + (SELECT COALESCE(SUM(g.version), 0) FROM sku_segments g WHERE g.sku = skus.sku),
  strategy = 'conditional', segments = 0
WHERE segments > 0;

DELETE FROM sku_segments;

CREATE TRIGGER IF NOT EXISTS segments_are_folded BEFORE INSERT ON sku_segments BEGIN SELECT RAISE(ABORT, 'segments are folded'); END;
