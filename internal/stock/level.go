package stock

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/idempotency"
)

// MaxQuantity is the largest number of units in one order line or one restock.
const MaxQuantity = 1000

// MaxOnHand is the largest number of units that a SKU can be created with.
const MaxOnHand = 1_000_000_000

// Outcomes of an operation on stock.
var (
	// ErrNotFound says that there is no such SKU.
	ErrNotFound = errors.New("stock: no such SKU")

	// ErrExists says that the SKU was created with another strategy or another
	// number of units.
	ErrExists = errors.New("stock: the SKU exists and differs")

	// ErrInvalid says that an argument is outside its bounds.
	ErrInvalid = errors.New("stock: invalid argument")

	// ErrConflict says that the level changed between the read and the write.
	// Reading again and repeating is safe.
	ErrConflict = errors.New("stock: the level changed meanwhile")

	// ErrUnfenced says that the SKU is sold by a strategy that has no fences.
	ErrUnfenced = errors.New("stock: the strategy of the SKU has no fences")

	// ErrRaisesCounter says that the lock service of the SKU raises its fences by itself.
	ErrRaisesCounter = errors.New("stock: the lock service of the SKU raises low fences by itself, and a rebase is not for it")

	// ErrBusy says that the operation was still waiting for its turn when its
	// deadline came. It had no effect.
	ErrBusy = errors.New("stock: busy until the deadline")

	// ErrLockHeld says that somebody else held the lock of a SKU for as long as the operation was to wait for it. The
	// operation had no effect. It matches [ErrBusy].
	ErrLockHeld = fmt.Errorf("stock: somebody else holds the lock: %w", ErrBusy)

	// ErrRowLocked says that somebody else keeps a row locked that the operation needs, for longer than it
	// waits for rows. The operation had no effect. It matches [ErrBusy].
	ErrRowLocked = fmt.Errorf("stock: a row is locked: %w", ErrBusy)

	// ErrFencesLost says that the lock service of the SKU gives fences far below the one that the row has
	// accepted: it has lost its data. The operation had no effect. It matches [ErrBusy].
	ErrFencesLost = fmt.Errorf("stock: the lock service has lost its data and counts its fences from the start: see shop fence rebase: %w", ErrBusy)

	// ErrUnavailable says that a store that the operation needs does not
	// answer. The operation had no effect.
	ErrUnavailable = errors.New("stock: a store does not answer")

	// ErrLockAway says that the lock service of a SKU does not answer. The operation had no
	// effect. It matches [ErrUnavailable].
	ErrLockAway = fmt.Errorf("stock: the lock service does not answer: %w", ErrUnavailable)
)

// Level is the state of one SKU.
type Level struct {
	SKU      string
	Strategy string
	OnHand   int64
	Reserved int64
	Version  int64
	Limit    int64       // units that one customer may buy in all; 0: any number
	Fence    dlock.Fence // the newest fence that the row has accepted; zero if none

	// Base is added to the token of every lease before the row sees it. It is zero until
	// [Service.Rebase].
	Base uint64
}

// Available returns the number of units that can be promised. It is negative
// once more has been promised than exists.
func (l Level) Available() int64 { return l.OnHand - l.Reserved }

// Shortage is one SKU that has fewer units than were wanted.
type Shortage struct {
	SKU       string
	Requested int64
	Available int64
}

// ShortageError says which SKUs of an order are out of stock. The order had no
// effect.
type ShortageError struct{ Shortages []Shortage }

// Error implements error.
func (e *ShortageError) Error() string {
	parts := make([]string, len(e.Shortages))
	for i, s := range e.Shortages {
		parts[i] = fmt.Sprintf("%q has %d of %d", s.SKU, s.Available, s.Requested)
	}
	return "stock: short of " + strings.Join(parts, ", ")
}

// FencedError says that the row of a SKU has accepted a newer fence than that of the claim, or has another token
// offset. It matches [dlock.ErrFenced].
type FencedError struct {
	Refused  Claim
	Accepted dlock.Fence
	Base     uint64 // [Level.Base] as it is now
}

// Error implements error.
func (e *FencedError) Error() string {
	return fmt.Sprintf("stock: %q has accepted fence %d and counts from %d, and was claimed with %d, counted from %d: %v",
		e.Refused.SKU, e.Accepted.Token, e.Base, e.Refused.Fence.Token, e.Refused.Base, dlock.ErrFenced)
}

// Is makes the error match [dlock.ErrFenced].
func (e *FencedError) Is(target error) bool { return target == dlock.ErrFenced }

var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// ValidSKU reports whether sku can name a SKU: 1 to 64 letters, digits, dots,
// underscores and dashes, beginning with a letter or digit. Nothing in it needs
// quoting in a key, a path or a URL.
func ValidSKU(sku string) bool { return name.MatchString(sku) }

// Reader reads what is stored.
type Reader interface {
	// Level returns the level of sku, or [ErrNotFound].
	Level(ctx context.Context, sku string) (Level, error)

	// Levels returns up to limit levels in the order of their SKUs, beginning
	// behind after.
	Levels(ctx context.Context, after string, limit int) ([]Level, error)

	// Audit compares columns, ledger and orders of sku in one snapshot, or of
	// every SKU when sku is empty. An unknown sku is [ErrNotFound].
	Audit(ctx context.Context, sku string) ([]Audit, error)

	// AuditRecent is Audit of what was written since the last audit that found every invariant of a SKU. Records that were
	// right then, and have no ledger entry since, are not read. It blocks as long as there is much to read.
	AuditRecent(ctx context.Context, sku string) ([]Audit, error)
}

// Store keeps the levels.
type Store interface {
	Reader

	// CreateSKU stores l with a RESTOCK of its units. created is false when the
	// SKU was created with the same strategy, limit and number of units before;
	// with others the error is [ErrExists].
	CreateSKU(ctx context.Context, l Level) (level Level, created bool, err error)

	// Restock adds quantity units to sku, or returns [ErrNotFound]. With once it
	// stores the answer in the same transaction, or returns the errors of
	// [idempotency] and changes nothing.
	Restock(ctx context.Context, sku string, quantity int64, once *idempotency.Request) (Level, error)

	// Rebase gives sku a base that it never had, at least its accepted fence, with a REBASE in the
	// ledger, or returns [ErrNotFound].
	Rebase(ctx context.Context, sku string) (Level, error)
}
