package lab

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// confirming are the settings of semi-synchronous replication in docs/how-to/switch-the-database.md. The writer has confirmed, too.
var confirming = map[string]string{
	"rpl_semi_sync_slave_enabled": "1", "rpl_semi_sync_master_wait_point": "AFTER_SYNC", "rpl_semi_sync_master_timeout": "4294967295",
	"init_rpl_role": "SLAVE", "gtid_strict_mode": "1", "sync_binlog": "1",
}

const (
	confirmed = "SET GLOBAL rpl_semi_sync_master_enabled = 1"
	unheard   = "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'Rpl_semi_sync_master_wait_sessions'"
)

func runDatabaseFailover(ctx context.Context, r *Run) {
	t := (&stores{r: r}).theater("the writer of the database is killed after its replica was cut off", Legend{Holds: "as it should be", Stale: "orders lost, or sold twice", Waits: "cut off, or waits for the replica", Neutral: "runs"})
	async := t.failDatabase(ctx, "async", nil)
	semi := t.failDatabase(ctx, "semi-sync", confirming)
	r.Effect(async.lost == async.late, "asynchronous: %s that had been acknowledged were lost", count(async.lost, "order"))
	r.Effect(len(async.placed) == async.units+async.late, "asynchronous: their units were sold again, so %d customers have an order of %d units", len(async.placed), async.units)
	r.Cure(semi.lost == 0 && errors.Is(semi.unanswered, order.ErrOutcomeUnknown),
		"semi-synchronous: %d acknowledged orders were lost. The order that no replica had was not acknowledged", semi.lost)
	r.Cure(len(semi.placed) == semi.units, "semi-synchronous: %d customers have an order of %d units", len(semi.placed), semi.units)
}

// databaseFailover is a sale on a database whose writer is killed.
type databaseFailover struct {
	*scene

	writer, replica *testbed.MariaDB
	shop            *sqlstore.Store
	units, late     int // in stock, and of them those that are sold after the replica was cut off

	last       sync.WaitGroup // of the orders after the cut
	placed     []string       // ids of acknowledged orders
	unanswered error          // of the first order that was not acknowledged
	lost       int
}

// failDatabase sells while the replica is connected, and then while it is not. It kills the writer, promotes the replica, and sells the rest.
func (t *theater) failDatabase(ctx context.Context, name string, vars map[string]string) *databaseFailover {
	f := &databaseFailover{scene: &scene{theater: t, name: name, sku: name}, units: t.r.Size(6, 20), late: t.r.Size(2, 5)}
	f.open(ctx, vars)
	began := time.Now()
	for range f.units - f.late {
		check(f.place(ctx))
	}
	all := ask(ctx, f.writer, "SELECT @@gtid_binlog_pos")
	if late := ask(ctx, f.replica, "SELECT MASTER_GTID_WAIT('"+all+"', 20)"); late != "0" {
		fail("the replica does not receive the orders")
	}
	f.step("%d of %d units are sold, and the replica has these orders", f.units-f.late, f.units)
	f.pace(ctx)
	check(f.replica.Exec(ctx, "STOP SLAVE IO_THREAD"))
	cut := time.Now()
	f.step("the replica is cut off from the writer. Customers order the last %d units", f.late)
	killed, ended := f.sellCutOff(ctx)
	f.pace(ctx)
	check(f.replica.Exec(ctx, "STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = 0"))
	promoted := time.Now()
	f.step("the replica is promoted: STOP SLAVE, RESET SLAVE ALL, read_only = 0")
	f.compare(ctx)
	await(ctx, "the shop to sell out", func() bool {
		_, short := errors.AsType[*stock.ShortageError](f.place(ctx))
		return short
	})
	f.step("the shop uses the new writer, and sells until it is out of stock: %d orders were acknowledged for %d units", len(f.placed), f.units)
	end := time.Now()
	f.span("writer", began, killed, Neutral, "accepts writes")
	f.mark("writer", killed, false, "killed")
	f.span("replica", began, cut, Neutral, "replica")
	f.span("replica", cut, promoted, Waits, "cut off")
	f.span("replica", promoted, end, Neutral, "accepts writes")
	f.mark("orders", cut, true, "%d acknowledged", f.units-f.late)
	if f.unanswered == nil {
		f.mark("orders", ended, false, "%d more acknowledged: they are lost", f.late)
	} else {
		f.span("orders", cut, ended, Waits, "waits")
		f.mark("orders", ended, true, "not acknowledged")
	}
	f.mark("orders", end, len(f.placed) == f.units, "%d acknowledged for %d units", len(f.placed), f.units)
	return f
}

// open starts a writer and its replica, and puts the SKU on sale.
func (f *databaseFailover) open(ctx context.Context, vars map[string]string) {
	f.r.Defer(func() error { // after the servers have ended
		f.last.Wait()
		return nil
	})
	fast := map[string]string{"innodb_flush_log_at_trx_commit": "2"} // the machine does not fail
	maps.Copy(fast, vars)
	servers := must(testbed.StartReplicated(ctx, 2, fast))
	f.r.Defer(servers.Close)
	f.writer, f.replica = servers.Nodes()[0], servers.Nodes()[1]
	if vars != nil {
		check(f.writer.Exec(ctx, confirmed))
	}
	hosts := strings.Join([]string{f.writer.Addr(), f.replica.Addr()}, ",")
	f.shop = must(sqlstore.Open(ctx, sqlstore.Config{URL: "mysql://seller:secret@" + hosts + "/" + testbed.DefaultDatabase, Instance: "lab"}))
	f.r.Defer(f.shop.Close)
	check(f.shop.Migrate(ctx))
	_, _, err := f.shop.CreateSKU(ctx, stock.Level{SKU: f.sku, Strategy: "conditional", OnHand: int64(f.units)})
	check(err)
	f.step("a MariaDB server and its replica run")
}

// place places an order of one unit, and remembers it if it was acknowledged.
func (f *databaseFailover) place(ctx context.Context) error {
	request := oneUnit("customer", f.sku, time.Hour)
	err := f.shop.Commit(ctx, &order.Batch{Claims: []stock.Claim{{SKU: f.sku, Update: stock.Conditional}}, Requests: []*order.Request{request}})
	if err = errors.Join(err, request.Err); err == nil {
		f.placed = append(f.placed, request.Order.ID)
	}
	return err
}

// sellCutOff sells the last units one after the other, and kills the writer as soon as they are sold, or one waits for the replica.
func (f *databaseFailover) sellCutOff(ctx context.Context) (killed, ended time.Time) {
	done := make(chan struct{})
	f.last.Go(func() { // ends with the writer, if not before
		defer close(done)
		for i := 0; f.unanswered == nil && i < f.late; i++ {
			f.unanswered = f.place(ctx)
		}
		ended = time.Now()
	})
	waits := false
	await(ctx, "the last orders", func() bool {
		select {
		case <-done:
			return true
		default:
			waits = ask(ctx, f.writer, unheard) != "0"
			return waits
		}
	})
	if waits {
		f.step("the first of them is not acknowledged: its COMMIT waits until the replica has it")
	} else {
		f.step("all of them are acknowledged")
	}
	f.pace(ctx)
	check(f.writer.Kill())
	killed = time.Now()
	<-done
	f.step("the writer is killed. Customers have %d acknowledged orders", len(f.placed))
	return killed, ended
}

// compare counts the acknowledged orders that the new writer lacks.
func (f *databaseFailover) compare(ctx context.Context) {
	stored := make(map[string]bool)
	_, fates := fatesOf(ctx, f.shop, f.sku)
	for _, o := range fates {
		stored[o.OrderID] = true
	}
	for _, id := range f.placed {
		if !stored[id] {
			f.lost++
		}
	}
	f.step("the new writer has %d of the %d acknowledged orders", len(f.placed)-f.lost, len(f.placed))
	f.r.Measure("acknowledged orders that are lost: "+f.name, float64(f.lost), "orders")
}

// ask returns the only value of a query, which root sends to a server.
func ask(ctx context.Context, m *testbed.MariaDB, query string) (value string) {
	db := must(sql.Open("mysql", m.DSN()))
	defer db.Close()
	check(db.QueryRowContext(ctx, query).Scan(&value))
	return value
}
