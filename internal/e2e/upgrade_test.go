package e2e_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// Previous versions, each built once.
var (
	version010 = builtFrom("ad8d591")
	schema15   = builtFrom("59d2ba0") // the last commit before the work on schema 16
)

// builtFrom returns what builds the program of a commit from the history of the repository.
func builtFrom(commit string) (build func() (path string, err error)) {
	return sync.OnceValues(func() (string, error) {
		folder := program + "-" + commit
		tar, err := exec.Command("git", "-C", "../..", "archive", "--format=tar", commit).Output()
		if err != nil {
			return "", fmt.Errorf("git archive %s: %w; the history of the repository has to be complete", commit, err)
		}
		if err := os.Mkdir(folder, 0o700); err != nil {
			return "", err
		}
		unpack := exec.Command("tar", "-x", "-C", folder)
		unpack.Stdin = bytes.NewReader(tar)
		if out, err := unpack.CombinedOutput(); err != nil {
			return "", fmt.Errorf("tar: %w: %s", err, out)
		}
		compile := exec.Command("go", "build", "-trimpath", "-ldflags=-w", "-o", "shop-"+commit, "./cmd/shop")
		compile.Dir = folder
		if out, err := compile.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go build of %s: %w: %s", commit, err, out)
		}
		return filepath.Join(folder, "shop-"+commit), nil
	})
}

// upgradeSale is a sale of two segmented SKUs and a plain one, during which the program is upgraded.
type upgradeSale struct {
	client    *http.Client
	previous  []string                 // URLs of instances of version 0.1.0
	instances atomic.Pointer[[]string] // URLs of those that buyers use
	accepted  atomic.Int64
	refused   atomic.Int64 // without an effect, by an instance of version 0.1.0

	mu   sync.Mutex
	open []string // paths of orders that are neither paid nor cancelled
}

// buy places orders until stop is closed, pays some of them and cancels others.
func (s *upgradeSale) buy(t *testing.T, hand int, stop chan struct{}) {
	t.Helper()
	for n := hand; ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		urls := *s.instances.Load()
		body := fmt.Sprintf(`{"customer_id":"c%d","items":[{"sku":"spread","quantity":%d}]}`, hand, 1+n%5)
		if n%3 == 0 {
			body = fmt.Sprintf(`{"customer_id":"c%d","items":[{"sku":"both","quantity":1},{"sku":"plain","quantity":1},{"sku":"spread","quantity":1}]}`, hand)
		}
		a := insist(func() answer {
			return ask(t.Context(), s.client, http.MethodPost, urls[n%len(urls)]+"/api/v1/orders", body)
		})
		if a.err == nil && a.status == http.StatusConflict { // sold out for now
			continue
		}
		if a.err != nil || a.status != http.StatusCreated {
			t.Errorf("an order: %v", a)
			return
		}
		s.accepted.Add(1)
		s.end(t, a.header.Get("Location"), n)
	}
}

// end pays or cancels an order, or leaves it open.
func (s *upgradeSale) end(t *testing.T, path string, n int) {
	t.Helper()
	verb, body := "", ""
	switch n % 4 {
	case 0:
		verb, body = "/pay", `{"payment_id":"p1"}`
	case 1, 2:
		verb = "/cancel"
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open = append(s.open, path)
		return
	}
	for try := n; ; try++ {
		urls := *s.instances.Load()
		url := urls[try%len(urls)]
		a := insist(func() answer { return ask(t.Context(), s.client, http.MethodPost, url+path+verb, body) })
		if a.err == nil && a.status == http.StatusInternalServerError && slices.Contains(s.previous, url) {
			s.refused.Add(1) // the segment to which version 0.1.0 wanted to write is gone
			<-time.After(20 * time.Millisecond)
			continue
		}
		if a.err != nil || a.status != http.StatusOK && a.status != http.StatusConflict { // it may have expired
			t.Errorf("%s: %v", verb, a)
		}
		return
	}
}

// until waits until so many more orders are accepted.
func (s *upgradeSale) until(t *testing.T, more int64) {
	t.Helper()
	want := s.accepted.Load() + more
	testbedtest.Eventually(t, fmt.Sprint(more, " more orders"), func() bool { return t.Failed() || s.accepted.Load() >= want })
}

// Two instances of version 0.1.0 sell segmented SKUs while an instance of this version migrates the database and joins
// them. Orders placed before the migration are paid, cancelled and expire after it. No unit is lost or sold twice.
func TestUpgradeFoldsSegmentsInMidSale(t *testing.T) {
	t.Parallel()
	previous, err := version010()
	if err != nil {
		t.Fatal(err)
	}
	for engine, database := range map[string]func(t *testing.T) string{
		"sqlite":  func(t *testing.T) string { t.Helper(); return "sqlite:" + filepath.Join(t.TempDir(), "shop.db") },
		"mariadb": func(t *testing.T) string { t.Helper(); return testbedtest.Database(t) },
	} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			upgradeInMidSale(t, previous, database(t))
		})
	}
}

func upgradeInMidSale(t *testing.T, previous, database string) {
	t.Helper()
	flags := []string{"--database", database, "--permits", "1000"}
	old := []*instance{
		launchOf(t, previous, append(flags, "--instance", "old-1")...),
		launchOf(t, previous, append(flags, "--instance", "old-2", "--order-ttl", "2s")...),
	}
	for _, in := range old {
		in.listens(t)
	}
	for sku, strategy := range map[string]string{"spread": "segmented", "both": "segmented", "plain": "conditional"} {
		old[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+sku, `{"on_hand":1000,"strategy":"`+strategy+`"}`)
	}
	refuses(t, "run shop migrate", "audit", "--database", database)
	s := &upgradeSale{client: customers(t), previous: []string{old[0].url, old[1].url}}
	s.instances.Store(&s.previous)
	var buyers sync.WaitGroup
	stop := make(chan struct{})
	end := sync.OnceFunc(func() {
		close(stop)
		buyers.Wait()
	})
	defer end()
	for hand := range 6 {
		buyers.Go(func() { s.buy(t, hand, stop) })
	}
	s.until(t, 60)
	later := start(t, flags...)
	s.instances.Store(&[]string{old[0].url, old[1].url, later.url})
	s.until(t, 60)
	if status, answer := old[0].send(t, "PUT", "/api/v1/skus/new", `{"on_hand":100,"strategy":"segmented"}`); status != http.StatusInternalServerError {
		t.Errorf("version 0.1.0 creates a segmented SKU after the migration: status %d: %s", status, answer)
	}
	answer := later.want(t, http.StatusUnprocessableEntity, "PUT", "/api/v1/skus/new", `{"on_hand":100,"strategy":"segmented"}`)
	if !strings.Contains(answer, "unknown-strategy") || !strings.Contains(answer, "conditional, optimistic, for-update") {
		t.Errorf("a segmented SKU: %s", answer)
	}
	s.instances.Store(&[]string{later.url})
	s.until(t, 20) // no buyer uses a previous instance any more, except one that has been waiting since then
	end()
	for _, in := range old {
		in.stop()
		in.stopped(t)
	}
	t.Logf("%d orders, and %d payments and cancellations that version 0.1.0 refused after the migration", s.accepted.Load(), s.refused.Load())
	s.sellOut(t, later, database)
}

// sellOut ends the open orders, and sells what is left. Then each SKU has exactly the units that it began with.
func (s *upgradeSale) sellOut(t *testing.T, later *instance, database string) {
	t.Helper()
	for n, path := range s.open {
		s.end(t, path, n%3) // an order of old-2 may have expired
	}
	store := books(t, database)
	for _, sku := range []string{"spread", "both", "plain"} {
		testbedtest.Eventually(t, "no order of "+sku+" is open", func() bool {
			audits, err := store.Audit(t.Context(), sku)
			return err != nil || audits[0].Open == 0
		})
		var level struct {
			Strategy  string
			Available int
		}
		decode(t, later.want(t, http.StatusOK, "GET", "/api/v1/skus/"+sku, ""), &level)
		if level.Strategy != "conditional" || level.Available == 0 {
			t.Errorf("%s: %+v", sku, level)
		}
		for rest := level.Available; rest > 0; rest -= 100 {
			later.want(t, http.StatusCreated, "POST", "/api/v1/orders", fmt.Sprintf(`{"customer_id":"c","items":[{"sku":%q,"quantity":%d}]}`, sku, min(rest, 100)))
		}
		later.want(t, http.StatusConflict, "POST", "/api/v1/orders", strings.Replace(oneUnit, `"a"`, `"`+sku+`"`, 1))
		audits, err := store.Audit(t.Context(), sku)
		if err != nil {
			t.Fatal(err)
		}
		if a := audits[0]; !a.OK() || a.Accepted() != 1000 {
			t.Errorf("%+v %q", a, a.Broken())
		}
	}
	shows(t, []string{"audit", "--database", database}, "spread", "ok")
}
