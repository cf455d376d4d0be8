package sqlstore

import (
	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
	gormschema "gorm.io/gorm/schema"
)

// dialector has gorm expand arguments into placeholders, which are the same for all engines, and scan rows.
type dialector struct {
	name string
	pool gorm.ConnPool
}

// Name implements [gorm.Dialector].
func (d dialector) Name() string { return d.name }

// Initialize implements [gorm.Dialector].
func (d dialector) Initialize(db *gorm.DB) error {
	db.ConnPool = d.pool
	callbacks.RegisterDefaultCallbacks(db, &callbacks.Config{})
	return nil
}

// BindVarTo implements [gorm.Dialector].
func (dialector) BindVarTo(w clause.Writer, _ *gorm.Statement, _ any) { _ = w.WriteByte('?') }

// Explain implements [gorm.Dialector].
func (dialector) Explain(sql string, args ...any) string {
	return logger.ExplainSQL(sql, nil, `'`, args...)
}

// gorm calls the others for statements that it forms, and for changes of the schema.

func (dialector) Migrator(*gorm.DB) gorm.Migrator                    { return nil }
func (dialector) DataTypeOf(*gormschema.Field) string                { return "" }
func (dialector) DefaultValueOf(*gormschema.Field) clause.Expression { return clause.Expr{SQL: "NULL"} }
func (dialector) QuoteTo(w clause.Writer, name string)               { _, _ = w.WriteString(name) }
