CREATE TABLE IF NOT EXISTS skus (
  sku         TEXT NOT NULL PRIMARY KEY,
  strategy    TEXT NOT NULL,
  on_hand     INTEGER NOT NULL,
  reserved    INTEGER NOT NULL,
  version     INTEGER NOT NULL,
  fence       INTEGER NOT NULL,
  fence_owner TEXT NOT NULL,
  created_at  INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS orders (
  id          TEXT NOT NULL PRIMARY KEY,
  customer_id TEXT NOT NULL,
  status      TEXT NOT NULL,
  payment_id  TEXT NOT NULL,
  created_at  INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS order_lines (
  order_id TEXT NOT NULL,
  sku      TEXT NOT NULL,
  quantity INTEGER NOT NULL,
  PRIMARY KEY (order_id, sku)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS order_lines_sku ON order_lines (sku);

CREATE TABLE IF NOT EXISTS ledger (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  sku        TEXT NOT NULL,
  order_id   TEXT NOT NULL,
  movement   TEXT NOT NULL,
  quantity   INTEGER NOT NULL,
  on_hand    INTEGER NOT NULL,
  reserved   INTEGER NOT NULL,
  fence      INTEGER NOT NULL,
  instance   TEXT NOT NULL,
  created_at INTEGER NOT NULL
);

CREATE INDEX IF NOT EXISTS ledger_sku ON ledger (sku);
