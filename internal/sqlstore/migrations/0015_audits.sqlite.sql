CREATE TABLE IF NOT EXISTS audits (
  sku        TEXT NOT NULL PRIMARY KEY,
  ledger_id  INTEGER NOT NULL,
  version    INTEGER NOT NULL,
  stocked    INTEGER NOT NULL,
  on_hand    INTEGER NOT NULL,
  reserved   INTEGER NOT NULL,
  fence      INTEGER NOT NULL,
  checked_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS orders_status ON orders (status, expires_at);
