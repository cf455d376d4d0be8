CREATE TABLE IF NOT EXISTS api_keys (
  prefix      TEXT NOT NULL PRIMARY KEY,
  hash        BLOB NOT NULL,
  customer_id TEXT NOT NULL,
  admin       INTEGER NOT NULL,
  name        TEXT NOT NULL,
  created_at  INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL,
  revoked_at  INTEGER NOT NULL
) WITHOUT ROWID;
