package demo

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"example.com/shop/internal/platform/storeurl"
	"example.com/shop/internal/show/fleet"
)

// printer prints a run for a person, or as JSON to a program.
type printer struct{ Config }

func (p *printer) printf(format string, args ...any) {
	if !p.JSON {
		fmt.Fprintf(p.Out, format, args...)
	}
}

// columns is the width of the tables. Nothing that is printed is wider.
const columns = 120

const (
	header = "%-16s %-9s %9s %9s %9s %10s %8s %9s %8s %8s %5s  %s\n"
	row    = "%-16s %-9s %9d %9d %9d %10d %8d %9.0f %8.1f %8.1f %5d  %s\n"
)

func (p *printer) start(s *fleet.Stores) {
	p.printf("A flash sale: %d units, %d buyers' attempts from %d connections", p.Stock, p.Attempts, customers)
	switch {
	case p.URL != "":
		p.printf(" at %s.\nDatabase: %s.\n\n", p.URL, kinds(s).Database)
	case p.Instances == 1:
		p.printf(" at one instance of shop.\nRedis: %s. Database: %s.%s\n\n", kinds(s).Redis, kinds(s).Database, kinds(s).others())
	default:
		p.printf(" at %d instances of shop,\neach a process of its own. Redis: %s. Database: %s.%s\n\n", p.Instances, kinds(s).Redis, kinds(s).Database, kinds(s).others())
	}
	if len(s.Missing) > 0 {
		p.printf("Not installed, so nothing is shown on it: %s. make servers installs what is missing.\n\n", strings.Join(s.Missing, ", "))
	}
}

// members prints who sells, and the header of the variants.
func (p *printer) members(c Cluster) {
	leader := "no leader yet"
	if c.Leader != "" {
		leader = fmt.Sprintf("%s leads, in term %d", c.Leader, c.Term)
	}
	p.printf("Members: %s; %s.\n\n", strings.Join(c.Members, ", "), leader)
	p.printf(header, "strategy", "expected", "accepted", "rejected", "oversold", "undersold", "lost", "orders/s", "p50 ms", "p99 ms", "hit", "verdict")
	p.printf("%s\n", strings.Repeat("-", columns))
}

// others names the lock services alongside Redis and the database.
func (s Stores) others() string {
	var b strings.Builder
	for _, o := range []struct {
		name    string
		servers int
	}{{"Redlock", s.Redlock}, {"ZooKeeper", s.ZooKeeper}, {"etcd", s.Etcd}} {
		if o.servers > 0 {
			fmt.Fprintf(&b, " %s: %d.", o.name, o.servers)
		}
	}
	return b.String()
}

func (p *printer) variant(a Variant) {
	p.printf(row, a.Strategy, a.Expected, a.Accepted, a.Rejected, a.Oversold, a.Undersold, a.LostUpdates,
		a.OrdersPerSecond, a.P50, a.P99, a.InstancesHit, mark(a.Verdict, a.Expected))
	if why := explain(a); why != "" {
		p.note("%s", why)
	}
	if a.Repeated > 0 {
		how := "did not oversell"
		if a.Strategy == unfenced {
			how = "oversold, as it may if a holder outlives its lease"
		}
		p.note("sale %d of at most %d: each one before it %s", a.Repeated+1, tries, how)
	}
	if a.Errors == 0 && a.firstError != "" {
		p.note("%s", a.firstError)
	}
	if a.Errors > 0 {
		p.note("%d attempts got neither yes nor no; the first: %s", a.Errors, a.firstError)
	}
	if a.InstancesHit == 1 && p.Instances > 1 {
		p.note("one instance answered everything, so nothing was shown about several")
	}
	if a.Expected == Exact && a.Verdict != Exact && len(a.broken) > 0 {
		p.note("%s", strings.Join(a.broken, "; "))
	}
}

// mark returns the verdict of a variant, in capitals if it is not the one to expect.
func mark(verdict, expected string) string {
	if verdict == expected {
		return verdict
	}
	return strings.ToUpper(verdict)
}

// note prints what there is to say of the row above.
func (p *printer) note(format string, args ...any) {
	line := "  `-"
	for word := range strings.FieldsSeq(fmt.Sprintf(format, args...)) {
		if utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns {
			p.printf("%s\n", line)
			line = "    "
		}
		line += " " + word
	}
	p.printf("%s\n", line)
}

// explain says in one line how a variant came to oversell.
func explain(a Variant) string {
	if a.Oversold == 0 {
		return ""
	}
	how := "orders were accepted on a level that was no longer true when it was written back"
	switch a.Strategy {
	case "naive":
		how = "orders read the same level, each decided alone, and each wrote back its own result over the others'"
	case "local":
		how = "a mutex keeps the orders of one process apart; the other processes have mutexes of their own"
	}
	return fmt.Sprintf("%d units were sold that never existed: %s", a.Oversold, how)
}

// proof says in one line what the sales showed.
func proof(variants []Variant) string {
	if slices.ContainsFunc(variants, func(v Variant) bool { return v.Expected == Exact }) {
		return "the unsafe baselines oversold under this load, and every other strategy was exact under the same load"
	}
	return "the unsafe baselines oversold under this load. No other strategy ran"
}

// report prints the verdict of the run, or the whole report as JSON.
func (p *printer) report(r Report) error {
	if p.JSON {
		e := json.NewEncoder(p.Out)
		e.SetEscapeHTML(false)
		return e.Encode(r)
	}
	p.printf("\nhit = instances that answered; lost = lost updates, in the ledger and not in the stock columns;\nundersold = units that no order has and nobody can buy; orders/s = answers, yes or no; CAPITALS = an unexpected verdict.\n\n")
	switch r.Verdict {
	case Proved:
		p.printf("PROVED: %s.\n", proof(r.Variants))
		if r.Expiry != nil {
			p.printf("        Unpaid orders released their units once, on time, although an instance was killed.\n")
		}
	case Failed:
		p.printf("FAILED: %s.\n", failure(r))
	default:
		if slices.ContainsFunc(r.Variants, func(a Variant) bool { return a.Verdict == Inconclusive }) {
			p.printf("INCONCLUSIVE: the instances did not respond to every sale.\n")
			break
		}
		p.printf("INCONCLUSIVE: no unsafe baseline oversold under this load, so the exact variants prove nothing. Try --attempts %d.\n", 4*p.Attempts)
	}
	if p.URL == "" && !p.Keep {
		p.printf("\nNext:\n"+
			"  %[1]s demo --all                                 every lock, on real servers\n"+
			"  %[1]s demo --strategies naive,redis --stock 500  a longer sale\n"+
			"  %[1]s demo --instances 1                         the mutex is enough for one process\n"+
			"  %[1]s demo --keep                                leave the instances up for curl\n"+
			"  %[1]s demo --redis redis://127.0.0.1:6379/0 \\\n"+
			"    --database mysql://USER:PASSWORD@127.0.0.1:3306/DB\n", program(os.Args[0]))
	}
	return nil
}

// keep prints how to reach the instances that stay up.
func (p *printer) keep(urls []string, database, sku string) {
	p.printf("\nThe instances stay up until Ctrl-C:\n")
	for _, u := range urls {
		p.printf("  %s\n", u)
	}
	u := urls[0]
	p.printf("\nTry:\n"+
		"  curl -i -X PUT %[1]s/api/v1/skus/mine -H 'Content-Type: application/json' -d '{\"on_hand\":2,\"strategy\":\"redis\"}'\n"+
		"  curl -i -X POST %[2]s/api/v1/orders -H 'Content-Type: application/json' -d '{\"customer_id\":\"me\",\"items\":[{\"sku\":\"mine\",\"quantity\":1}]}'\n"+
		"  curl %[1]s/api/v1/skus/mine\n"+
		"  curl '%[1]s/api/v1/audit?sku=%[3]s'\n"+
		"  %[5]s audit --database %[4]s\n", u, urls[len(urls)-1], sku, storeurl.Redacted(database), program(os.Args[0]))
}

// program is how the user called this program, whose first argument is called. The program that go run builds lies in
// a temporary folder or in the build cache.
func program(called string) string {
	if built.MatchString(called) {
		return "go run ./cmd/shop"
	}
	return called
}

var built = regexp.MustCompile(`/go-build\d+/b001/exe/shop$|/[0-9a-f]{64}-d/shop$`)

// bar is a progress bar on a terminal; elsewhere it shows nothing.
type bar struct {
	p     *printer
	name  string
	total int

	mu   sync.Mutex
	next time.Time // guarded by mu
}

func (p *printer) bar(name string, total int) *bar { return &bar{p: p, name: name, total: total} }

// set draws the bar for done of total, at most every 50 ms.
func (b *bar) set(done int) {
	if !b.p.Terminal || b.p.JSON {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); done == b.total || now.After(b.next) {
		b.next = now.Add(50 * time.Millisecond)
		const width = 40
		full := width * done / b.total
		b.p.printf("\r%-16s [%s%s] %d/%d", b.name, strings.Repeat("#", full), strings.Repeat(".", width-full), done, b.total)
	}
}

func (b *bar) clear() {
	if b.p.Terminal && !b.p.JSON {
		b.p.printf("\r%s\r", strings.Repeat(" ", 80))
	}
}
