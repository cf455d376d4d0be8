package e2e_test

import (
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// confirmed has a writer wait for a replica. A replica that has it waits for replicas of its own, and applies nothing.
const confirmed = "SET GLOBAL rpl_semi_sync_master_enabled = 1"

// startSemiSync starts a writer and two replicas as docs/how-to/switch-the-database.md describes them.
func startSemiSync(t *testing.T) *servers {
	t.Helper()
	all, r := startReplicas(t, map[string]string{
		"rpl_semi_sync_slave_enabled": "1", "rpl_semi_sync_master_wait_point": "AFTER_SYNC",
		"rpl_semi_sync_master_timeout": "4294967295", "init_rpl_role": "SLAVE", "gtid_strict_mode": "1", "sync_binlog": "1",
	})
	r.confirmed = true
	testbedtest.Exec(t, r.writer, confirmed)
	all.faults = []engineFault{
		{"writer killed, replica promoted", func() { r.fail(r.writer.Kill, r.rejoin) }, "", nil},
		{"writer cut off from replicas for 3 s, then killed", r.cutOff(r.rejoin), "", nil},
		{"writer paused, replica promoted, writer resumes", func() {
			r.fail(r.writer.Pause, func(old *testbed.MariaDB) {
				must(t, old.Resume())
				<-time.After(3 * time.Second)
				must(t, old.Kill())
				r.rejoin(old)
			})
		}, "", nil},
		{"writer switched over", func() {
			old := r.writer
			procedure(t, "Switch", map[string][]*testbed.MariaDB{"old": {old}, "new": {r.replicas[0]}, "semi-synchronous": nil})
			testbedtest.Replicate(t, r.replicas[1], r.replicas[0])
			r.writer, r.replicas[0] = r.replicas[0], old
		}, "", nil},
	}
	return all
}

// startAsync starts a writer and two replicas that do not confirm what they have received.
func startAsync(t *testing.T) *servers {
	t.Helper()
	all, r := startReplicas(t, nil)
	all.loses = true
	lost := func(*testbed.MariaDB) { all.nodes = []string{r.replicas[0].URL(), r.writer.URL()} } // the old writer has orders that these lack
	all.faults = []engineFault{{"writer cut off from replicas for 3 s, then killed", r.cutOff(lost), "", nil}}
	return all
}

// replicas are a writer and the replicas that may succeed it.
type replicas struct {
	t         *testing.T
	writer    *testbed.MariaDB
	replicas  []*testbed.MariaDB
	confirmed bool // semi-synchronous
}

func startReplicas(t *testing.T, more map[string]string) (*servers, *replicas) {
	t.Helper()
	nodes := testbedtest.StartReplicated(t, 3, more)
	return serversOf(nodes), &replicas{t: t, writer: nodes[0], replicas: nodes[1:3:3]}
}

// fail has the writer fail, promotes a replica, and does something about the old writer.
func (r *replicas) fail(how func() error, mend func(old *testbed.MariaDB)) {
	r.t.Helper()
	must(r.t, how())
	old := r.writer
	writer, other := promote(r.t, r.replicas, r.confirmed)
	r.writer, r.replicas = writer, []*testbed.MariaDB{other}
	mend(old)
}

// rejoin starts a writer that has crashed as a replica.
func (r *replicas) rejoin(old *testbed.MariaDB) {
	r.t.Helper()
	must(r.t, old.Restart(r.t.Context()))
	testbedtest.Exec(r.t, old, "SET GLOBAL gtid_slave_pos = @@gtid_binlog_pos")
	testbedtest.Replicate(r.t, old, r.writer)
	r.replicas = append(r.replicas, old)
}

// cutOff stops replication for 3 s, and then the writer.
func (r *replicas) cutOff(mend func(old *testbed.MariaDB)) func() {
	return func() {
		for _, replica := range r.replicas {
			testbedtest.Exec(r.t, replica, "STOP SLAVE IO_THREAD")
		}
		<-time.After(3 * time.Second)
		r.fail(r.writer.Kill, mend)
	}
}

// startGroup starts three members that elect the writer.
func startGroup(t *testing.T) *servers {
	t.Helper()
	group := testbedtest.StartGroup(t, newer(t, "mysql-9"))
	all := serversOf(group.Nodes())
	ctx := t.Context()
	primary := func() *testbed.MariaDB {
		m, err := group.Primary(ctx)
		must(t, err)
		return m
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
		{"primary switched", func() { must(t, group.Switch(ctx)) }, "", nil},
	}
	return all
}
