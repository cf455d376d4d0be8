package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// configuration is the balancer of the deployment.
const configuration = "../../deployments/haproxy.cfg"

// haproxy returns the program.
func haproxy(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"haproxy", "/usr/sbin/haproxy", "/usr/local/sbin/haproxy", "/opt/homebrew/bin/haproxy"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("SHOP_TEST_REQUIRE") == "1" {
		t.Fatal("haproxy is not installed")
	}
	t.Skip("haproxy is not installed; SHOP_TEST_REQUIRE=1 makes this a failure")
	return ""
}

// balance runs the balancer as it is deployed, but for addresses: those of instances are given.
// It returns where it listens, once it finds at least one of them ready.
func balance(t *testing.T, addresses ...string) (url string) {
	t.Helper()
	text, err := os.ReadFile(configuration)
	if err != nil {
		t.Fatal(err)
	}
	servers := ""
	for i, a := range addresses {
		servers += fmt.Sprintf("  server shop-%d %s\n", i+1, strings.TrimPrefix(a, "http://"))
	}
	config := swap(t, string(text), `(?m)^  server-template .*$\n?`, servers)
	config = swap(t, config, `(?m)^resolvers docker\n(  .*\n)*`, "")
	address, output := runHAProxy(t, config, ":8080")
	url = "http://" + address
	testbedtest.Eventually(t, "the balancer is ready", func() bool {
		a := ask(t.Context(), http.DefaultClient, http.MethodGet, url+"/lb-health", "")
		if a.status != http.StatusOK && strings.Contains(output.String(), "ALERT") {
			t.Fatalf("haproxy: %s", output)
		}
		return a.status == http.StatusOK
	})
	return url
}

// runHAProxy runs HAProxy with a configuration, and returns where it listens instead of at an address, and what it prints.
func runHAProxy(t *testing.T, config, instead string) (address string, output *testbedtest.Buffer) {
	t.Helper()
	program := haproxy(t)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = listener.Addr().String()
	socket, err := listener.(*net.TCPListener).File() // which it inherits: a port that was free a moment ago may be taken
	listener.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, []byte(swap(t, config, `(?m)^  bind `+instead+`$`, "  bind fd@3")), 0o600); err != nil {
		t.Fatal(err)
	}
	output = new(testbedtest.Buffer)
	c := exec.CommandContext(context.WithoutCancel(t.Context()), program, "-db", "-f", file)
	c.Stdout, c.Stderr, c.ExtraFiles = output, output, []*os.File{socket}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return address, output
}

// swap replaces the one match of a pattern.
func swap(t *testing.T, text, pattern, with string) string {
	t.Helper()
	p := regexp.MustCompile(pattern)
	if n := len(p.FindAllString(text, -1)); n != 1 {
		t.Fatalf("%d lines match %s, want one: %s", n, pattern, text)
	}
	return p.ReplaceAllLiteralString(text, with)
}

// The balancer tries another instance if it gets no connection. It never sends an order twice, because an instance
// that has read the order may have placed it.
func TestBalancerNeverSendsAnOrderTwice(t *testing.T) {
	t.Parallel()
	if out, err := exec.CommandContext(t.Context(), haproxy(t), "-c", "-f", configuration).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := newStage(t)
	works := start(t, append(s.flags, "--instance", "real")...)
	works.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1000,"strategy":"conditional"}`)

	var read atomic.Int64
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dying := &http.Server{Handler: diesAfterOrder(t, works.url, &read), ReadHeaderTimeout: time.Minute}
	go dying.Serve(listener)
	defer dying.Close()

	client := customers(t)
	client.Transport.(*http.Transport).DisableKeepAlives = true // a used connection would be closed without a response
	url := balance(t, listener.Addr().String(), works.url)
	placed, lost := 0, 0
	for end := time.Now().Add(time.Minute); placed+lost < 20 || (placed == 0 || lost == 0) && time.Now().Before(end); { // both are ready at last
		switch a := served(t.Context(), client, url, "a"); {
		case a.status == http.StatusCreated:
			placed++
		case a.status == http.StatusBadGateway && strings.Contains(a.header.Get("Content-Type"), "problem+json"):
			lost++
		case nobody(a) && time.Now().Before(end):
			<-time.After(100 * time.Millisecond)
		default:
			t.Fatal(a)
		}
	}
	if lost == 0 || placed == 0 || int(read.Load()) != lost {
		t.Errorf("%d orders were placed, %d lost; %d were read", placed, lost, read.Load())
	}
	balancedBut(t, s, "a", int64(placed+lost)) // each one once

	// The instance has gone. Before the balancer detects that, other instances get the orders. One order can fail:
	// the order that the balancer is passing on while it marks the instance down.
	dying.Close()
	unknown := 0
	for range 10 {
		a := served(t.Context(), client, url, "a")
		for end := time.Now().Add(time.Minute); nobody(a) && time.Now().Before(end); a = served(t.Context(), client, url, "a") {
			<-time.After(100 * time.Millisecond)
		}
		if a.status == http.StatusBadGateway && unknown == 0 {
			unknown++
		} else if a.status != http.StatusCreated {
			t.Error(a)
		}
	}
}

// diesAfterOrder is an instance that is ready, counts and passes on each order that it has read, and dies before it has answered.
func diesAfterOrder(t *testing.T, works string, read *atomic.Int64) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		read.Add(1)
		order := func() answer {
			return ask(context.WithoutCancel(r.Context()), http.DefaultClient, r.Method, works+r.URL.Path, string(body))
		}
		if a := insist(order); a.status != http.StatusCreated {
			t.Error(a)
		}
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		connection.Close()
	}
}

// nobody reports whether the balancer has sent the order to no instance, because it considers none ready. On a paused
// machine its health checks are not answered in time.
func nobody(a answer) bool {
	return a.status == http.StatusServiceUnavailable && strings.Contains(a.body, `"type":"about:blank"`)
}

// An order that waits for the maximum time gets its response through the balancer. That is a refusal, or a unit that
// is released at the last moment.
func TestBalancerLetsOrdersWait(t *testing.T) {
	t.Parallel()
	const writeTimeout = 15 * time.Second
	s := newStage(t)
	r := start(t, s.flags...)
	r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1,"strategy":"conditional"}`)
	r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/b", `{"on_hand":0,"strategy":"conditional"}`)
	sold := r.place(t)
	client, url := customers(t), balance(t, r.url)
	vain := make(chan answer, 1)
	go func() { vain <- served(t.Context(), client, url, "b", "Prefer", "wait=30") }()
	inTime := waiter(t, client, url, "Prefer", "wait=30")
	inLine(t, s, 0)
	<-time.After(writeTimeout + 3*time.Second)
	r.want(t, http.StatusOK, "POST", "/api/v1/orders/"+sold+"/cancel", "")
	if a := received(t, inTime); a.status != http.StatusCreated || a.took < writeTimeout {
		t.Errorf("with a unit: %v", a)
	}
	if a := received(t, vain); a.status != http.StatusConflict || a.took < 30*time.Second {
		t.Errorf("in vain: %v", a)
	}
}

// Instances behind the balancer stop and start all the time, on addresses that stay. Customers
// notice nothing.
func TestRestartsBehindTheBalancer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	fleet, addresses := s.spawnThree(t)
	fleet[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":10000000,"strategy":"conditional"}`)
	url := balance(t, addresses...)
	load := &shoppers{client: customers(t), url: func() string { return url }}
	load.shop(t.Context(), 8)
	restarts := testbedtest.Size(2, 100)
	for i := range restarts {
		old := fleet[i%3]
		old.stop()
		old.stopped(t)
		fleet[i%3] = spawn(t, append(s.flags, "--instance", fmt.Sprint("shop-", i), "--listen", strings.TrimPrefix(addresses[i%3], "http://"))...)
		before := load.count()
		testbedtest.Eventually(t, "orders are placed", func() bool { return load.count() > before+20 })
		probe := time.Now() // the balancer has to see it before the next one goes
		testbedtest.Eventually(t, "the balancer knows it", func() bool { return time.Since(probe) > 1500*time.Millisecond })
	}
	load.stop(t, fleet[0])
	t.Logf("%d restarts", restarts)
	balancedBut(t, s, "a", 0)
}

// spawnThree starts three instances as processes, and returns their addresses as well.
func (s stage) spawnThree(t *testing.T) (fleet []*instance, addresses []string) {
	t.Helper()
	for i := range 3 {
		fleet = append(fleet, spawn(t, append(s.flags, "--instance", fmt.Sprint("shop-", i))...))
		addresses = append(addresses, fleet[i].url)
	}
	return fleet, addresses
}
