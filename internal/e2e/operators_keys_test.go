package e2e_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/identity"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// migrated prepares a database.
func migrated(t *testing.T, database string) {
	t.Helper()
	if code, out, stderr := call(t, noEnv, "migrate", "--create", "--database", database); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, out, stderr)
	}
}

// newKey makes a key from the command line.
func newKey(t *testing.T, database string, args ...string) (header []string, text string) {
	t.Helper()
	migrated(t, database)
	code, out, stderr := call(t, noEnv, append([]string{"keys", "create", "--database", database}, args...)...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	text = strings.TrimSpace(out)
	return []string{"Authorization", "Bearer " + text}, text
}

// A key of the command allows exactly its operations, at every instance. A revoked key is refused everywhere within
// the promised time.
func TestServiceWithKeys(t *testing.T) {
	t.Parallel()
	database := sqliteURL(t)
	admin, _ := newKey(t, database, "--admin")
	ann, annsKey := newKey(t, database, "--customer", "ann")
	ben, _ := newKey(t, database, "--customer", "ben")
	fleet := []*instance{
		start(t, "--database", database, "--auth", "keys", "--instance", "one"),
		start(t, "--database", database, "--auth", "keys", "--instance", "two"),
	}
	client := customers(t)
	expect := func(r *instance, status int, header []string, method, path, body string) answer {
		t.Helper()
		a := insist(func() answer { return ask(t.Context(), client, method, r.url+path, body, header...) })
		if a.err != nil || a.status != status {
			t.Fatalf("%s %s: %v, want %d", method, path, a, status)
		}
		return a
	}
	const sku = `{"on_hand":5,"strategy":"conditional"}`
	annsOrder := `{"customer_id":"ann","items":[{"sku":"a","quantity":1}]}`
	expect(fleet[0], http.StatusUnauthorized, nil, "PUT", "/api/v1/skus/a", sku)
	expect(fleet[0], http.StatusForbidden, ann, "PUT", "/api/v1/skus/a", sku)
	expect(fleet[0], http.StatusCreated, admin, "PUT", "/api/v1/skus/a", sku)

	if a := expect(fleet[0], http.StatusUnauthorized, nil, "POST", "/api/v1/orders", annsOrder); a.header.Get("WWW-Authenticate") == "" {
		t.Error("a 401 without WWW-Authenticate")
	}
	expect(fleet[0], http.StatusForbidden, ben, "POST", "/api/v1/orders", annsOrder)
	path := expect(fleet[0], http.StatusCreated, ann, "POST", "/api/v1/orders", annsOrder).header.Get("Location")
	for _, r := range fleet {
		for status, header := range map[int][]string{http.StatusOK: ann, http.StatusNotFound: ben, http.StatusUnauthorized: nil} {
			expect(r, status, header, "GET", path, "")
			expect(r, status, header, "GET", path+"/movements", "")
		}
		expect(r, http.StatusNotFound, ben, "POST", path+"/cancel", "")
		expect(r, http.StatusNotFound, ben, "POST", path+"/pay", `{"payment_id":"p1"}`)
		if a := expect(r, http.StatusOK, ben, "GET", "/api/v1/orders", ""); strings.Contains(a.body, "ann") {
			t.Errorf("ben's orders: %s", a.body)
		}
		expect(r, http.StatusForbidden, ann, "GET", "/api/v1/audit", "")
		expect(r, http.StatusOK, nil, "GET", "/livez", "")
		expect(r, http.StatusOK, nil, "GET", "/readyz", "")
		admins := &instance{url: r.admin(t)}
		expect(admins, http.StatusUnauthorized, nil, "GET", "/api/v1/timers", "")
		expect(admins, http.StatusOK, admin, "GET", "/api/v1/timers", "")
	}
	expect(fleet[1], http.StatusOK, admin, "GET", path, "")
	expect(fleet[1], http.StatusOK, ann, "POST", path+"/pay", `{"payment_id":"p1"}`)

	shows(t, []string{"keys", "revoke", "--database", database, annsKey[5:15]}, "was revoked", identity.Keep.String())
	revoked := time.Now()
	for _, r := range fleet { // both have seen the key a moment ago
		for {
			asked := time.Now()
			a := ask(t.Context(), client, "GET", r.url+path, "", ann...)
			if a.status == http.StatusUnauthorized {
				break
			}
			waiting := later(a.status, a.body) && asked.Sub(revoked) < time.Minute // a refusal for now opens nothing
			if a.status == http.StatusOK && asked.Sub(revoked) > identity.Keep || a.status != http.StatusOK && !waiting {
				t.Fatalf("%v after the key was revoked: %v", asked.Sub(revoked), a)
			}
			<-time.After(20 * time.Millisecond)
		}
		expect(r, http.StatusNotFound, ben, "GET", path, "")
	}
}

// Only a listener that nobody else can reach asks nobody for a key, and then says so.
func TestKeysAreTheDefaultUnlessTheListenerIsLoopback(t *testing.T) {
	t.Parallel()
	for listen, status := range map[string]int{
		"127.0.0.1:0": http.StatusOK,
		"localhost:0": http.StatusOK,
		"[::1]:0":     http.StatusOK,
		"0.0.0.0:0":   http.StatusUnauthorized,
		":0":          http.StatusUnauthorized,
	} {
		r := start(t, "--database", sqliteURL(t), "--listen", listen)
		if _, port, found := strings.Cut(r.url, "[::]:"); found {
			r.url = "http://127.0.0.1:" + port
		}
		r.want(t, status, "GET", "/api/v1/orders", "")
		if warned := strings.Contains(r.stderr.String(), "authentication disabled"); warned != (status == http.StatusOK) {
			t.Errorf("%s: warned %v: %s", listen, warned, r.stderr)
		}
	}
	local := start(t, "--database", sqliteURL(t))
	none := start(t, "--database", sqliteURL(t), "--listen", "0.0.0.0:0", "--auth", "none")
	none.url = strings.Replace(strings.Replace(none.url, "[::]", "127.0.0.1", 1), "0.0.0.0", "127.0.0.1", 1)
	none.want(t, http.StatusOK, "GET", "/api/v1/orders", "")
	if !strings.Contains(none.stderr.String(), "authentication disabled") {
		t.Errorf("no warning: %s", none.stderr)
	}
	// Without keys, an instance on loopback refuses foreign host names. With keys, or opened to a network by --auth
	// none, it accepts any name.
	keys := start(t, "--database", sqliteURL(t), "--auth", "keys")
	for r, want := range map[*instance]int{local: http.StatusForbidden, none: http.StatusOK, keys: http.StatusUnauthorized} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/api/v1/orders", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "rebound.example"
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s asked as rebound.example: %s, want %d", r.url, resp.Status, want)
		}
	}
}

// The command notifies all instances that share its Redis, and that listen; the streams of the key
// end. Without Redis the key is revoked all the same.
func TestRevocationReachesTheInstances(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	header, text := newKey(t, s.database, "--customer", "ann")
	prefix := text[5:15]
	fleet := []*instance{
		start(t, append(s.flags, "--auth", "keys", "--instance", "shop-1")...), start(t, append(s.flags, "--auth", "keys", "--instance", "shop-2")...),
	}
	ends := make(chan error, len(fleet))
	client := customers(t)
	for _, r := range fleet {
		w := newPage(t, "?types=order")
		w.key = header[1]
		go func() { ends <- w.watch(t.Context(), r.url) }()
		testbedtest.Eventually(t, "the stream has begun", func() bool { return w.count(func() int { return len(w.resets) }) > 0 })
	}
	var revoked time.Time
	testbedtest.Eventually(t, "the instances are notified", func() bool { // one that does not listen yet is notified the next time
		shows(t, []string{"keys", "revoke", "--database", s.database, "--redis", s.redis, prefix}, "was revoked")
		revoked = time.Now()
		for end := revoked.Add(time.Second); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
			if !slices.ContainsFunc(fleet, func(r *instance) bool {
				return !strings.Contains(r.stderr.String(), "a key was revoked") || !strings.Contains(r.stderr.String(), prefix)
			}) {
				return true
			}
		}
		return false
	})
	for _, r := range fleet {
		if a := insist(func() answer { return ask(t.Context(), client, http.MethodGet, r.url+"/api/v1/orders", "", header...) }); a.status != http.StatusUnauthorized {
			t.Errorf("the key that was revoked: %v", a)
		}
	}
	for range fleet {
		<-ends
	}
	t.Logf("two instances have refused the key, and its streams have ended, %v after the command", time.Since(revoked).Round(time.Millisecond))

	other, text := newKey(t, s.database, "--customer", "ben")
	code, out, stderr := call(t, noEnv, "keys", "revoke", "--database", s.database, "--redis", "redis://127.0.0.1:1/0", text)
	if code != 0 || !strings.Contains(out, "was revoked") || !strings.Contains(stderr, "not notified") {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
	if a := insist(func() answer {
		return ask(t.Context(), client, http.MethodGet, fleet[0].url+"/api/v1/orders", "", other...)
	}); a.status != http.StatusUnauthorized {
		t.Errorf("the key that was revoked: %v", a)
	}
	if code, _, stderr := call(t, noEnv, "keys", "revoke", "--database", s.database, "--redis", "localhost", text); code != 2 || !strings.Contains(stderr, "--redis") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
