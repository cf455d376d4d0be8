package timeout

import (
	"fmt"
	"strings"
	"time"
)

const (
	nameMax   = 32
	nameChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"
	idMax     = 64
	ahead     = 10 * 366 * 24 * time.Hour
)

// validName says whether s can name a kind or a partition: it becomes part of keys.
func validName(s string) bool {
	return s != "" && len(s) <= nameMax && strings.Trim(s, nameChars) == ""
}

func checkKind(kind string) error {
	if !validName(kind) {
		return fmt.Errorf("%w: kind %q: give 1 to %d letters, digits, dots, dashes and underscores", ErrInvalid, kind, nameMax)
	}
	return nil
}

func checkID(kind, id string) error {
	if err := checkKind(kind); err != nil {
		return err
	}
	if id == "" || len(id) > idMax {
		return fmt.Errorf("%w: %s timer %.80q: give an id of 1 to %d characters", ErrInvalid, kind, id, idMax)
	}
	if strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return fmt.Errorf("%w: %s timer %q: give an id of printable ASCII characters without spaces", ErrInvalid, kind, id)
	}
	return nil
}

// checkDue returns due rounded up to a millisecond, so that nothing is early.
func checkDue(kind, id string, due time.Time) (time.Time, error) {
	if due.Before(time.Unix(0, 0)) || due.After(time.Now().Add(ahead)) {
		return due, fmt.Errorf("%w: %s timer %q due %v: give a moment after 1970 and at most 10 years ahead",
			ErrInvalid, kind, id, due.Format(time.RFC3339))
	}
	return ceil(due), nil
}

// ceil rounds up to a millisecond of the calendar.
func ceil(t time.Time) time.Time {
	return time.UnixMilli(t.Add(time.Millisecond - time.Nanosecond).UnixMilli())
}
