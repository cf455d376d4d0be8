DROP INDEX IF EXISTS timeouts_created;
DROP INDEX IF EXISTS timeouts_next;
ALTER TABLE timeouts DROP COLUMN min_version;
CREATE INDEX timeouts_next ON timeouts (state, next_at, kind, id, lane);
