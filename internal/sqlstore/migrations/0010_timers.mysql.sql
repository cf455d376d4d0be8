ALTER TABLE timeouts DROP KEY timeouts_created;
SET @change = (SELECT IF(COUNT(*) = 0, 'DO 0', 'ALTER TABLE timeouts MODIFY COLUMN min_version INT NOT NULL DEFAULT 0')
FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'timeouts' AND column_name = 'min_version');
PREPARE change_column FROM @change;
EXECUTE change_column;
