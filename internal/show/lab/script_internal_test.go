package lab

import (
	"errors"
	"strconv"
	"testing"
)

func TestScriptEndsAtItsFirstError(t *testing.T) {
	t.Parallel()
	closed, after := false, false
	err := attempt(func() {
		defer func() { closed = true }()
		must(strconv.Atoi("no number"))
		after = true
	})
	if !errors.Is(err, strconv.ErrSyntax) || !closed || after {
		t.Errorf("attempt: %v, deferred calls %t, later steps %t; want the error and deferred calls only", err, closed, after)
	}
	if err := attempt(func() { check(nil) }); err != nil {
		t.Errorf("attempt of a script without errors: %v", err)
	}
}

func TestPanicOfAScriptIsNoFailure(t *testing.T) {
	t.Parallel()
	defer func() {
		if got := recover(); got != "a mistake" {
			t.Errorf("recovered %v, want the panic of the script", got)
		}
	}()
	_ = attempt(func() { panic("a mistake") })
}
