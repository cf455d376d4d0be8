package e2e_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// confirmed has a writer wait for a replica. A replica that has it waits for replicas of its own, and applies nothing.
const confirmed = "SET GLOBAL rpl_semi_sync_master_enabled = 1"

// startSemiSync starts a writer and two replicas as docs/how-to/switch-the-database.md describes them.
func startSemiSync(t *testing.T) *servers {
	t.Helper()
	r := startReplicas(t, map[string]string{
		"rpl_semi_sync_slave_enabled": "1", "rpl_semi_sync_master_wait_point": "AFTER_SYNC",
		"rpl_semi_sync_master_timeout": "4294967295", "init_rpl_role": "SLAVE", "gtid_strict_mode": "1", "sync_binlog": "1",
	})
	r.promote = func(replicas []*testbed.MariaDB) (writer, other *testbed.MariaDB) { return promote(t, replicas, true) }
	testbedtest.Exec(t, r.writer, confirmed)
	r.all.faults = r.faults(func() {
		old := r.writer
		r.all.promoted = procedure(t, "Switch", map[string][]*testbed.MariaDB{"old": {old}, "new": {r.replicas[0]}, "semi-synchronous": nil})
		testbedtest.Replicate(t, r.replicas[1], r.replicas[0])
		r.writer, r.replicas[0] = r.replicas[0], old
	})
	return r.all
}

// startAsync starts a writer and two replicas that do not confirm what they have received.
func startAsync(t *testing.T) *servers {
	t.Helper()
	return startReplicas(t, nil).losing()
}

func startReplicas(t *testing.T, more map[string]string) *replicas[*testbed.MariaDB] {
	t.Helper()
	nodes := testbedtest.StartReplicated(t, 3, more)
	return &replicas[*testbed.MariaDB]{
		t: t, all: serversOf("mysql://seller:secret@", nodes), writer: nodes[0], replicas: nodes[1:3:3],
		promote: func(replicas []*testbed.MariaDB) (writer, other *testbed.MariaDB) { return promote(t, replicas, false) },
		follow: func(old, writer *testbed.MariaDB) {
			must(t, old.Restart(t.Context()))
			testbedtest.Exec(t, old, "SET GLOBAL gtid_slave_pos = @@gtid_binlog_pos")
			testbedtest.Replicate(t, old, writer)
		},
		disconnect: func(replica *testbed.MariaDB) { testbedtest.Exec(t, replica, "STOP SLAVE IO_THREAD") },
	}
}

// replicated is a server that may be a writer or a replica.
type replicated interface {
	comparable
	Addr() string
	URL() string
	Kill() error
	Pause() error
	Resume() error
}

// replicas are a writer and the replicas that may succeed it.
type replicas[S replicated] struct {
	t          *testing.T
	all        *servers
	writer     S
	replicas   []S
	promote    func(replicas []S) (writer, other S)
	follow     func(old, writer S) // starts a writer that has crashed as a replica
	disconnect func(replica S)
}

// faults are what happens where no order may be lost.
func (r *replicas[S]) faults(switchOver func()) []engineFault {
	r.all.waits = mostWait
	var paused S
	return []engineFault{
		{"writer killed, replica promoted", func() { r.fail(r.writer.Kill, r.rejoin) }, "", nil},
		{"writer cut off from replicas for 3 s, then killed", r.cutOff(r.rejoin), "", nil},
		{"writer paused, replica promoted, writer resumes", func() {
			r.fail(r.writer.Pause, func(old S) { paused = old })
			r.all.promoted = time.Time{} // a client waits longer for a server that is paused
		}, "", func() { // all instances have left it: one that has not would read there what is old
			must(r.t, paused.Resume())
			<-time.After(3 * time.Second)
			must(r.t, paused.Kill())
			r.rejoin(paused)
		}},
		{"writer switched over", switchOver, "", nil},
	}
}

// losing returns servers of which the replicas lack some orders when one of them is promoted.
func (r *replicas[S]) losing() *servers {
	r.all.loses = true
	lost := func(S) { r.all.nodes = []string{r.replicas[0].URL(), r.writer.URL()} } // the old writer has orders that these lack
	r.all.faults = []engineFault{{"writer cut off from replicas for 3 s, then killed", r.cutOff(lost), "", nil}}
	return r.all
}

// fail has the writer fail, promotes a replica, and does something about the old writer.
func (r *replicas[S]) fail(how func() error, mend func(old S)) {
	r.t.Helper()
	must(r.t, how())
	old := r.writer
	writer, other := r.promote(r.replicas)
	r.all.promoted = time.Now()
	r.writer, r.replicas = writer, []S{other}
	mend(old)
}

// rejoin starts a writer that has crashed as a replica.
func (r *replicas[S]) rejoin(old S) {
	r.t.Helper()
	r.follow(old, r.writer)
	r.replicas = append(r.replicas, old)
}

// cutOff stops replication for 3 s, and then the writer.
func (r *replicas[S]) cutOff(mend func(old S)) func() {
	return func() {
		for _, replica := range r.replicas {
			r.disconnect(replica)
		}
		<-time.After(3 * time.Second)
		r.fail(r.writer.Kill, mend)
	}
}

// startGroup starts three members that elect the writer. The third instance reaches it at one address, as that of MySQL Router.
func startGroup(t *testing.T) *servers {
	t.Helper()
	group := testbedtest.StartGroup(t, newer(t, "mysql-9"))
	all := serversOf("mysql://seller:secret@", group.Nodes())
	ctx := t.Context()
	primary := func() *testbed.MariaDB {
		m, err := group.Primary(ctx)
		must(t, err)
		return m
	}
	router, lead := routerOf(t, group)
	all.databases[2] = "mysql://seller:secret@" + router + "/" + testbed.DefaultDatabase
	left := func(m *testbed.MariaDB) {
		db := testbedtest.OpenSQL(t, m.URL())
		testbedtest.Eventually(t, "the primary has left its group", func() (left bool) {
			must(t, db.QueryRowContext(ctx, "SELECT @@super_read_only AND COUNT(*) = 0 FROM performance_schema.replication_group_members WHERE MEMBER_STATE = 'ONLINE'").Scan(&left))
			return left
		})
	}
	joins := func(m *testbed.MariaDB) {
		testbedtest.Exec(t, m, "STOP GROUP_REPLICATION")
		must(t, group.Join(ctx, m))
		must(t, group.Whole(ctx))
	}
	var alone *testbed.MariaDB
	others := func() []*testbed.MariaDB {
		return slices.DeleteFunc(group.Nodes(), func(n *testbed.MariaDB) bool { return n == alone })
	}
	all.faults = []engineFault{
		{"primary killed for 5 s, joins again", func() {
			m := primary()
			must(t, m.Kill())
			<-time.After(5 * time.Second)
			must(t, m.Restart(ctx))
			must(t, group.Join(ctx, m))
			must(t, group.Whole(ctx))
		}, "", nil},
		{"primary paused for 20 s", func() {
			m := primary()
			must(t, m.Pause())
			<-time.After(20 * time.Second)
			must(t, m.Resume())
			must(t, group.Whole(ctx))
		}, "", nil},
		{"primary without its majority until it leaves, joins again", func() {
			alone = primary()
			for _, other := range others() {
				must(t, other.Pause())
			}
			left(alone)
		}, "store-unavailable", func() {
			for _, other := range others() {
				must(t, other.Resume())
			}
			joins(alone)
		}},
		{"primary cut off from the others until it leaves, joins again", func() {
			m := primary()
			must(t, group.Network.Cut(ctx, m.Addr()))
			left(m)
			must(t, group.Network.Mend(ctx, m.Addr()))
			joins(m)
		}, "", nil},
		{"primary switched", func() {
			must(t, group.Switch(ctx))
			lead()
			all.promoted = time.Now()
		}, "", nil},
	}
	return all
}

// routerOf returns an address that leads new connections to the primary, and what leads them there at once.
func routerOf(t *testing.T, group *testbed.Group) (addr string, lead func()) {
	t.Helper()
	router := testbedtest.StartProxy(t, group.Nodes()[0].Addr())
	lead = func() {
		if m, err := group.Primary(t.Context()); err == nil {
			router.Lead(m.Addr())
		}
	}
	var leading sync.WaitGroup
	t.Cleanup(leading.Wait)
	leading.Go(func() {
		for backoff.Sleep(t.Context(), 200*time.Millisecond) {
			lead()
		}
	})
	return router.Addr(), lead
}
