package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/identity"
	"example.com/shop/internal/platform/sqldb"
)

var _ identity.Store = (*Store)(nil)

// ErrNoSchema says that the database has no table or no column for what was asked: [Store.Migrate]
// has not been there.
var ErrNoSchema = errors.New("sqlstore: the schema is not up to date")

// RequireSchema returns [ErrNoSchema] if [Store.Migrate] was never called on the database, which may be another one than the
// user thinks.
func (s *Store) RequireSchema(ctx context.Context) error {
	v, err := schemaVersion(ctx, s.pool)
	if err == nil && v == 0 {
		return ErrNoSchema
	}
	return err
}

// RequireLatestSchema returns [ErrNoSchema] if [Store.Migrate] of this program has changes left to make.
func (s *Store) RequireLatestSchema(ctx context.Context) error { return s.requireLatest(ctx, s.pool) }

func (s *Store) requireLatest(ctx context.Context, db *sql.DB) error {
	v, err := schemaVersion(ctx, db)
	if err == nil && v < s.latest() {
		return fmt.Errorf("%w: it has version %d, and this program needs %d", ErrNoSchema, v, s.latest())
	}
	return err
}

// keyRow is a row of api_keys. No time is 0.
type keyRow struct {
	Prefix     string
	Hash       []byte
	CustomerID string
	Admin      bool
	Name       string
	CreatedAt  int64
	ExpiresAt  int64
	RevokedAt  int64
	ReadAt     int64 // the time of reading; no column
}

const keyColumns = "prefix, hash, customer_id, admin, name, created_at, expires_at, revoked_at, "

// key returns the key as it reads at r.ReadAt.
func (r keyRow) key() identity.Key {
	k := identity.Key{
		Prefix: r.Prefix, Customer: r.CustomerID, Admin: r.Admin, Name: r.Name, State: identity.Active,
		CreatedAt: time.UnixMicro(r.CreatedAt).UTC(),
	}
	if r.ExpiresAt != 0 {
		k.ExpiresAt = time.UnixMicro(r.ExpiresAt).UTC()
		if r.ExpiresAt <= r.ReadAt {
			k.State = identity.Expired
		}
	}
	if r.RevokedAt != 0 {
		k.RevokedAt = time.UnixMicro(r.RevokedAt).UTC()
		k.State = identity.Revoked
	}
	return k
}

// CreateKey implements [identity.Store].
func (s *Store) CreateKey(ctx context.Context, k identity.Key, hash [32]byte, life time.Duration) (created identity.Key, err error) {
	now, expires := s.engine.Now, "0"
	if life > 0 {
		expires = fmt.Sprintf("%s + %d", now, life.Microseconds())
	}
	insert := `INSERT INTO api_keys (prefix, hash, customer_id, admin, name, created_at, expires_at, revoked_at)
		VALUES (?, ?, ?, ?, ?, ` + now + ", " + expires + ", 0)" + s.engine.OnConflict("prefix") + "prefix = api_keys.prefix"
	err = s.repeating(ctx, func(tx *gorm.DB) error {
		if err := tx.Exec(insert, k.Prefix, hash[:], k.Customer, k.Admin, k.Name).Error; err != nil {
			return err
		}
		row, err := s.readKey(tx, k.Prefix)
		if err != nil {
			return err
		}
		if [32]byte(row.Hash) != hash { // the same hash is what an earlier attempt has stored
			return fmt.Errorf("%w: %q", identity.ErrExists, k.Prefix)
		}
		created = row.key()
		return nil
	})
	if err != nil {
		return identity.Key{}, schema(err)
	}
	return created, nil
}

// Key implements [identity.Store].
func (s *Store) Key(ctx context.Context, prefix string) (identity.Record, error) {
	var row keyRow
	err := s.retrying(ctx, func() (err error) {
		row, err = s.readKey(s.db.WithContext(ctx), prefix)
		return err
	})
	if err != nil {
		return identity.Record{}, schema(err)
	}
	r := identity.Record{Key: row.key(), Hash: [32]byte(row.Hash)}
	if row.ExpiresAt != 0 {
		r.Left = time.Duration(row.ExpiresAt-row.ReadAt) * time.Microsecond
	}
	return r, nil
}

// readKey reads the row of a key in tx. The row has a hash of 32 bytes.
func (s *Store) readKey(tx *gorm.DB, prefix string) (keyRow, error) {
	var row keyRow
	r := tx.Raw("SELECT "+keyColumns+s.engine.Now+" AS read_at FROM api_keys WHERE prefix = ?", prefix).Scan(&row)
	if r.Error != nil {
		return keyRow{}, r.Error
	}
	if r.RowsAffected == 0 {
		return keyRow{}, fmt.Errorf("%w: %q", identity.ErrNotFound, prefix)
	}
	if len(row.Hash) != 32 {
		return keyRow{}, fmt.Errorf("sqlstore: key %q has a hash of %d bytes", prefix, len(row.Hash))
	}
	return row, nil
}

// Keys implements [identity.Store].
func (s *Store) Keys(ctx context.Context, after string, limit int) ([]identity.Key, error) {
	var rows []keyRow
	query := "SELECT " + keyColumns + s.engine.Now + " AS read_at FROM api_keys WHERE prefix > ? ORDER BY prefix LIMIT ?"
	err := s.retrying(ctx, func() error {
		rows = nil
		return s.db.WithContext(ctx).Raw(query, after, limit).Scan(&rows).Error
	})
	if err != nil {
		return nil, schema(err)
	}
	keys := make([]identity.Key, len(rows))
	for i, r := range rows {
		keys[i] = r.key()
	}
	return keys, nil
}

// RevokeKey implements [identity.Store].
func (s *Store) RevokeKey(ctx context.Context, prefix string) (k identity.Key, err error) {
	err = s.repeating(ctx, func(tx *gorm.DB) error {
		revoke := "UPDATE api_keys SET revoked_at = " + s.engine.Now + " WHERE prefix = ? AND revoked_at = 0"
		if err := tx.Exec(revoke, prefix).Error; err != nil {
			return err
		}
		row, err := s.readKey(tx, prefix)
		k = row.key()
		return err
	})
	if err != nil {
		return identity.Key{}, schema(err)
	}
	return k, nil
}

// schema names the error of a table or a column that does not exist.
func schema(err error) error {
	if sqldb.Is(err, sqldb.NoSchema) {
		return fmt.Errorf("%w: %w", ErrNoSchema, err)
	}
	return err
}
