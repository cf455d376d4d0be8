package lab

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// twoWriters are two nodes of a Galera cluster, both of which accept writes.
type twoWriters struct {
	*theater

	nodes []*testbed.MariaDB
	shop  *sqldb.Database // the second node as the shop connects to it
	seen  *sql.DB         // connections of the shop to it
}

func runTwoWriters(ctx context.Context, r *Run) {
	cluster := must(testbed.StartGalera(ctx, 2))
	r.Defer(cluster.Close)
	s := &stores{r: r}
	w := &twoWriters{theater: s.theater("A writes to node 1 of a Galera cluster, and B to node 2", Legend{Holds: "row locked, or the right outcome", Stale: "aborted by the other node, or an old state", Waits: "waits, or not committed", Paused: "sleeps in its transaction"}), nodes: cluster.Nodes()}
	w.shop = must(sqldb.Open(ctx, w.nodes[1].URL(), sqldb.AccessChange))
	w.seen = sql.OpenDB(w.shop.Usual)
	r.Defer(w.seen.Close)
	check(w.nodes[0].Exec(ctx, "CREATE TABLE shop.seats (name VARCHAR(20) PRIMARY KEY, sold INT)", "CREATE TABLE shop.tickets (buyer VARCHAR(40) PRIMARY KEY, name VARCHAR(20))",
		"CREATE TABLE shop.entries (buyer VARCHAR(40) PRIMARY KEY, name VARCHAR(20))"))
	r.Step("two nodes of a Galera cluster accept writes")
	tickets, refused := w.lock(ctx, "locked", "")
	r.Effect(tickets == 2 && !refused, "the row was locked at both nodes, and not written: both transactions were committed, and the seat was sold %d times", tickets)
	tickets, refused = w.lock(ctx, "written", "UPDATE seats SET sold = sold + 1 WHERE name = 'written'")
	r.Cure(tickets == 1 && refused, "the row was locked and written: both transactions counted 0 tickets, and COMMIT of B was refused with error 1213")
	tickets, entries, refused := w.abort(ctx, "one packet", true)
	r.Effect(tickets == 0 && entries == 1 && !refused, "one packet: COMMIT succeeded, and stored no ticket (%d) but the entry of it (%d)", tickets, entries)
	tickets, entries, refused = w.abort(ctx, "one by one", w.shop.Scripts)
	r.Cure(tickets == 0 && entries == 0 && refused, "each statement alone: the transaction was refused as a whole")
	stale, fresh := w.read(ctx)
	r.Effect(stale == 0, "wsrep_sync_wait = 0: node 2 read %d tickets after node 1 had committed 1", stale)
	r.Cure(fresh == 1, "wsrep_sync_wait = 1: the read waited, and found %d", fresh)
	outcomes := w.sell(ctx)
	r.Cure(outcomes == [2]string{accepted, overLimit}, "the shop, 1 open order per customer: A was %s, and B was %s", outcomes[0], outcomes[1])
}

// session is a connection to a node.
type session struct {
	*scene
	*sql.Conn

	name string
}

// session connects to a node, as A to the first one and as B to the second one.
func (w *twoWriters) session(ctx context.Context, c *scene, node int) *session {
	db := must(sql.Open("mysql", w.nodes[node].DSN()+"?multiStatements=true"))
	w.r.Defer(db.Close)
	return &session{c, must(db.Conn(ctx)), string(rune('A' + node))}
}

// do executes a statement, and returns whether the node refused it because of the other node.
func (s *session) do(ctx context.Context, statement string) (refused bool) {
	_, err := s.ExecContext(ctx, statement)
	return s.got(statement, err)
}

// got reports the outcome of a statement.
func (s *session) got(statement string, err error) (refused bool) {
	answer := "ok"
	if err != nil {
		if !sqldb.Is(err, sqldb.Conflict) {
			check(err)
		}
		answer, _, _ = strings.Cut(err.Error(), ":")
	}
	s.step("%s: %s: %s", s.name, statement, answer)
	s.mark(s.name, time.Now(), err == nil, "%s: %s", statement, answer)
	return err != nil
}

// number returns the only value of a query.
func number(ctx context.Context, from interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, query string, args ...any,
) (n int) {
	check(from.QueryRowContext(ctx, query, args...).Scan(&n))
	return n
}

const ticketsOf = "SELECT COUNT(*) FROM tickets WHERE name = ?"

// seat puts a seat on sale. Both nodes have it when seat returns.
func (w *twoWriters) seat(ctx context.Context, name string) *scene {
	check(w.nodes[0].Exec(ctx, "INSERT INTO shop.seats VALUES ('"+name+"', 0)"))
	number(ctx, w.seen, "SELECT sold FROM seats WHERE name = ?", name)
	return &scene{theater: w.theater, name: name}
}

// lock has both sessions lock the row of a seat, count its tickets, and sell it if there are none.
func (w *twoWriters) lock(ctx context.Context, name, write string) (tickets int, refused bool) {
	c := w.seat(ctx, name)
	both, locked := []*session{w.session(ctx, c, 0), w.session(ctx, c, 1)}, [2]time.Time{}
	for i, s := range both {
		must(s.ExecContext(ctx, "START TRANSACTION"))
		must(s.ExecContext(ctx, "SELECT sold FROM seats WHERE name = '"+name+"' FOR UPDATE"))
		n := number(ctx, s, ticketsOf, name)
		s.step("%s: SELECT ... FOR UPDATE locks the row at once. There are %d tickets", s.name, n)
		locked[i] = time.Now()
		s.mark(s.name, locked[i], true, "FOR UPDATE: the row is locked, %d tickets", n)
		c.pace(ctx)
	}
	for _, s := range both {
		if write != "" {
			must(s.ExecContext(ctx, write))
		}
		must(s.ExecContext(ctx, "INSERT INTO tickets VALUES (?, ?)", name+s.name, name))
	}
	c.step("A and B: %s", strings.TrimPrefix(write+", INSERT INTO tickets", ", "))
	c.pace(ctx)
	for i, s := range both {
		refused = s.do(ctx, "COMMIT")
		s.span(s.name, locked[i], time.Now(), Holds, "row locked")
	}
	tickets = number(ctx, w.seen, ticketsOf, name)
	c.r.Measure("tickets for 1 seat: row "+name, float64(tickets), "tickets")
	return tickets, refused
}

// abort has A commit a write to the row that B has written, while B is in the middle of its transaction.
func (w *twoWriters) abort(ctx context.Context, name string, packet bool) (tickets, entries int, refused bool) {
	c := w.seat(ctx, name)
	a, b := w.session(ctx, c, 0), w.session(ctx, c, 1)
	write := "UPDATE seats SET sold = sold + 1 WHERE name = '" + name + "'"
	statements := []string{
		"START TRANSACTION", "INSERT INTO tickets VALUES ('" + name + "', '" + name + "')", write, "DO SLEEP(5)", "DO 1",
		"INSERT INTO entries VALUES ('" + name + "', '" + name + "')", "COMMIT",
	}
	how, last := "each statement alone", "the packet up to COMMIT"
	if packet {
		how = "in one packet"
		statements = []string{strings.Join(statements, "; ")}
	}
	c.step("B sends %s: START TRANSACTION, INSERT INTO tickets, UPDATE seats, DO SLEEP(5), DO 1, INSERT INTO entries, COMMIT", how)
	began, done := time.Now(), make(chan error, 1)
	go func() { // ends with the connection, if not before
		var err error
		for i := 0; err == nil && i < len(statements); i++ {
			if _, err = b.ExecContext(ctx, statements[i]); !packet {
				last = statements[i]
			}
		}
		done <- err
	}()
	await(ctx, "B to be in the middle of its transaction", func() bool {
		return number(ctx, w.seen, "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User sleep'") == 1
	})
	c.at(began)
	c.pace(ctx)
	a.do(ctx, write)
	err := <-done
	c.span("B", began, time.Now(), Paused, "DO SLEEP(5)")
	refused = b.got(last, err)
	tickets, entries = number(ctx, w.seen, ticketsOf, name), number(ctx, w.seen, "SELECT COUNT(*) FROM entries WHERE name = ?", name)
	c.step("node 2 has of B: %s, and %d in the table of entries", count(tickets, "ticket"), entries)
	c.r.Measure("entries without a ticket: "+name, float64(entries-tickets), "entries")
	return tickets, entries, refused
}

// read has A commit a write that node 2 has received and does not apply yet, and reads it there: at once, and as the shop reads.
func (w *twoWriters) read(ctx context.Context) (stale, fresh int) {
	const query = "SELECT sold FROM seats WHERE name = 'read'"
	c := w.seat(ctx, "read")
	a, late, b := w.session(ctx, c, 0), w.session(ctx, c, 1), w.session(ctx, c, 1)
	must(late.ExecContext(ctx, "FLUSH TABLES WITH READ LOCK"))
	c.step("node 2 lags: it receives writes, and applies none")
	a.do(ctx, "UPDATE seats SET sold = 1 WHERE name = 'read'")
	stale = number(ctx, b, query)
	c.step("B reads %d, with wsrep_sync_wait = 0", stale)
	c.mark("B", time.Now(), stale == 1, "wsrep_sync_wait = 0: %d sold", stale)
	began, done := time.Now(), make(chan error, 1)
	go func() { done <- w.seen.QueryRowContext(ctx, query).Scan(&fresh) }()
	await(ctx, "the read to wait", func() bool {
		return len(done) == 1 || number(ctx, b, "SELECT COUNT(*) FROM information_schema.processlist WHERE info = ?", query) == 1
	})
	c.pace(ctx)
	must(late.ExecContext(ctx, "UNLOCK TABLES"))
	check(<-done)
	c.step("node 2 catches up. The read with wsrep_sync_wait = 1 has waited for that: %d", fresh)
	c.span("shop", began, time.Now(), Waits, "waits")
	c.mark("shop", time.Now(), fresh == 1, "wsrep_sync_wait = 1: %d sold", fresh)
	return stale, fresh
}

// sell has one customer order at two instances of the shop at once, with a limit of one open order. The SKUs differ, so the row of the
// customer decides.
func (w *twoWriters) sell(ctx context.Context) (outcomes [2]string) {
	w.records = must(sqlstore.Open(ctx, sqlstore.Config{URL: w.nodes[0].URL(), Instance: "lab"}))
	w.r.Defer(w.records.Close)
	check(w.records.Migrate(ctx))
	c := &scene{theater: w.theater, name: "shop"}
	var both [2]*Process
	for i, node := range w.nodes {
		name := string(rune('A' + i))
		w.stock(ctx, "sku-"+name, "conditional", 1)
		both[i] = w.r.ready(ctx, name, map[string]string{
			"database": node.URL(), "name": name, "sku": "sku-" + name, "update": fmt.Sprint(int(stock.Conditional)), "customer": "customer", "stop": pointReady + "," + pointCommit,
		})
	}
	var ready [2]Report
	for i, p := range both {
		ready[i] = p.To(ctx, pointCommit)
		c.at(ready[i].At)
	}
	c.step("two instances, each with an order of the same customer, are about to COMMIT. A customer may have 1 open order")
	c.pace(ctx)
	for i, p := range both {
		done := p.To(ctx, pointDone)
		outcomes[i] = done.Value
		c.span(p.Name, ready[i].At, done.At, Waits, "not committed")
		c.step("%s continues: %s", p.Name, done.Value)
		c.mark(p.Name, done.At, true, "%s", done.Value)
	}
	return outcomes
}
