package blackbox_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/stock"
)

// The disk under a SQLite file is full, which SQLite finds out at COMMIT. An order, a cancellation and a restock are
// refused at once and truly, and work when there is room again. To mount a small disk, the test must run as root.
func TestFullDiskRefusesAtOnce(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=2M"); errors.Is(err, syscall.EPERM) {
		t.Skip("no right to mount a disk")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	link := filepath.Join(t.TempDir(), "shop.db") // in a folder that is not full
	if err := os.Symlink(filepath.Join(disk, "full.db"), link); err != nil {
		t.Fatal(err)
	}
	s := open(t, "sqlite:"+link, "one")
	create(t, s, "a", "conditional", 10)
	placed := place(t, s, time.Hour, "a")
	filler := filepath.Join(disk, "filler")
	if err := os.WriteFile(filler, make([]byte, 2<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("a file as large as the disk: %v", err)
	}
	full := 0 // the log has some room for its next pages
	for range 100 {
		_, err := s.Restock(t.Context(), "a", 1, nil)
		if full++; err != nil {
			break
		}
	}
	began := time.Now()
	for name, f := range map[string]func() error{
		"order": func() error {
			r := request(1, "a")
			return errors.Join(s.Commit(t.Context(), batchOf("a", stock.Conditional, dlock.Fence{}, r)), r.Err)
		},
		"cancel": func() error {
			_, _, err := s.Settle(t.Context(), order.Target{ID: placed.ID}, order.Cancelled, "")
			return err
		},
		"restock": func() error {
			_, err := s.Restock(t.Context(), "a", 1, nil)
			return err
		},
	} {
		if err := f(); !errors.Is(err, stock.ErrUnavailable) || errors.Is(err, order.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "(13)") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("three refusals took %v", took)
	}
	for name, asks := range map[string]func(context.Context) error{"/readyz": s.Ready, "shop doctor": s.TryWrite} {
		if err := asks(t.Context()); !errors.Is(err, sqldb.ErrNoRoom) || !sqldb.Is(err, sqldb.Full) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("not ready: %v", err)
	}
	place(t, s, time.Hour, "a")
	if a := auditOf(t, s, "a"); !a.OK() || a.Open != 2 || a.Stocked != int64(10+full-1) {
		t.Errorf("after %d restocks: %+v %q", full-1, a, a.Broken())
	}
}
