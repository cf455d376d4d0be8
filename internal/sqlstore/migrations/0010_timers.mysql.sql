ALTER TABLE timeouts DROP KEY timeouts_created;
ALTER TABLE timeouts DROP COLUMN min_version;
