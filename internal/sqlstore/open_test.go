package sqlstore_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/sqlstore"
)

func TestOpenNamesTheAddressAndNoPassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"mysql://user:secret@127.0.0.1:1/shop",
		"mysql://user:secret@127.0.0.1:port/shop",
		"mysql://user:secret@127.0.0.1:1/",
		"mysql://user:1/secret@127.0.0.1:1/shop", // what a URL means by /, ? and # ends the address
		"mysql://user:/secret@127.0.0.1:1/shop",
		"mysql://user:?secret@127.0.0.1:1/shop",
		"mysql://user:#secret@127.0.0.1:1/shop",
		"mysql://user:secret#@127.0.0.1:1/shop",
		"mysql://user:%secret@127.0.0.1:1/shop",
		"sqlite:" + filepath.Join(t.TempDir(), "no", "such", "folder", "shop.db"),
		"sqlite:",
		"postgres://127.0.0.1/shop",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		s, err := sqlstore.Open(ctx, sqlstore.Config{URL: url})
		cancel()
		if err == nil {
			t.Errorf("%s: opened: %v", url, s.Close())
			continue
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows the password: %v", url, err)
		}
		if strings.ContainsRune(err.Error(), '\n') {
			t.Errorf("%s: more than a line: %v", url, err)
		}
	}
}
