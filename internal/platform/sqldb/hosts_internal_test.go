package sqldb

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// What to change follows once, after the errors of all hosts.
func TestHintsOfSeveralHostsStandOnce(t *testing.T) {
	t.Parallel()
	denied := explained(&pgconn.PgError{Code: "28P01", Message: "denied"}, false)
	unknown := explained(&pgconn.PgError{Code: "3D000", Message: "unknown"}, false)
	for hint, failed := range map[string][]error{
		"":                                  {errors.ErrUnsupported, errors.ErrUnsupported},
		Hint(denied):                        {denied, errors.ErrUnsupported, denied},
		Hint(unknown) + "; " + Hint(denied): {errors.ErrUnsupported, unknown, denied, unknown},
	} {
		var err error
		text := ""
		for i, each := range failed {
			err = host{address: fmt.Sprint("db", i)}.refusal(err, each)
			text += fmt.Sprintf("; db%d: %v", i, hinted(each).error)
		}
		if hint != "" {
			text += ": " + hint
		}
		if "; "+err.Error() != text || Hint(err) != hint || !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v, want %s", err, text[2:])
		}
	}
}
