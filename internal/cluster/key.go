package cluster

import (
	"errors"
	"fmt"
)

// Key describes a setting: its name, its type, and which values it can have.
type Key[T any] struct {
	// Name is that of the setting in the store. Required.
	Name string

	// Default is the value while the store has none.
	Default T

	// Parse reads a value. Required.
	Parse func(text string) (T, error)

	// Format is the inverse of Parse. The default is fmt.Sprint.
	Format func(value T) string

	// Validate returns what is wrong with a value. Nil: what can be parsed is fine.
	Validate func(value T) error
}

// maxEntry bounds the texts of settings.
const maxEntry = 4096

// validate completes the key.
func (k *Key[T]) validate() error {
	if k.Parse == nil {
		return fmt.Errorf("cluster: setting %q: no Parse", k.Name)
	}
	if err := (Member{Name: k.Name}).Validate(); err != nil {
		return fmt.Errorf("cluster: setting %q: %w", k.Name, err)
	}
	if k.Format == nil {
		k.Format = func(value T) string { return fmt.Sprint(value) }
	}
	if k.Validate == nil {
		k.Validate = func(T) error { return nil }
	}
	if err := k.Validate(k.Default); err != nil {
		return fmt.Errorf("cluster: setting %q: its default: %w: %w", k.Name, ErrInvalid, err)
	}
	return nil
}

// read returns the value of text, or [ErrInvalid] with the reason.
func (k *Key[T]) read(text string) (T, error) {
	value, err := k.Parse(text)
	if err == nil && len(text) > maxEntry {
		err = errors.New("too long")
	}
	if err == nil {
		err = k.Validate(value)
	}
	if err != nil {
		return value, fmt.Errorf("cluster: %s = %.80q: %w: %w", k.Name, text, ErrInvalid, err)
	}
	return value, nil
}
