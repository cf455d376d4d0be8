package clustertest

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/platform/testbed"
)

// event is what an instance in a process of its own reports.
type event struct {
	Joined, Elected, Wrote, Over bool

	Leader cluster.Leader
}

// nameVariable has the name of the process. If it is not set, the test that calls Serve has nothing to do.
const nameVariable = "SHOP_TEST_CLUSTER_NAME"

// Serve is an instance in a process of its own, which joins, leads whenever it can, and
// writes. It returns at once unless it is called in such a process, and otherwise not at all.
func Serve(t testing.TB, open func(t testing.TB) (i Instance, group string)) {
	t.Helper()
	name := os.Getenv(nameVariable)
	if name == "" {
		return
	}
	i, group := open(t)
	s := &server{out: json.NewEncoder(os.NewFile(3, "events"))}
	go func() { // it ends with its parent
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	Join(t, i, member(name))
	s.say(event{Joined: true})
	leads(t.Context(), t, Elect(t, i, group, name), name, func(ctx context.Context, term *cluster.Term) error {
		s.say(event{Elected: true, Leader: term.Leader()})
		pace := time.NewTicker(2 * time.Millisecond)
		defer pace.Stop()
		for ctx.Err() == nil {
			s.say(event{Wrote: true, Leader: term.Leader()})
			<-pace.C
		}
		s.say(event{Over: true, Leader: term.Leader()})
		return nil
	})
}

type server struct {
	mu  sync.Mutex
	out *json.Encoder
}

func (s *server) say(e event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.out.Encode(e) // a parent that has gone reads nothing
}

// Process is an instance in a process of its own. Its operations are recorded as far as they are known.
type Process struct {
	*os.Process

	joined chan struct{}
}

// start starts an instance, and returns when it has joined. It ends with the test.
func (h Harness) start(t testing.TB, group, name string, record *Record) *Process {
	t.Helper()
	if h.Process == nil {
		t.Skip("an instance cannot have a process of its own")
	}
	test, environment := h.Process(t, group)
	//nolint:gosec // It is this very program.
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "-test.run=^"+test+"$")
	cmd.Env = append(append(os.Environ(), nameVariable+"="+name), environment...)
	parent, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, events, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{events}
	err = cmd.Start()
	_ = events.Close()
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{cmd.Process, make(chan struct{})}
	var reading sync.WaitGroup
	reading.Go(func() { p.read(json.NewDecoder(in), record) })
	t.Cleanup(func() {
		_ = parent.Close()
		_ = cmd.Process.Kill()
		reading.Wait()
		_ = cmd.Wait() // it was killed
		_ = in.Close()
	})
	select {
	case <-p.joined:
	case <-time.After(2 * maxWait):
		t.Fatal("the process does not join")
	}
	return p
}

func (p *Process) read(in *json.Decoder, record *Record) {
	for {
		var e event
		switch err := in.Decode(&e); {
		case err != nil:
			return
		case e.Joined:
			close(p.joined)
		case e.Elected:
			record.Begin(e.Leader, nil)
		case e.Wrote:
			record.Write(e.Leader, func() bool { return true })
		case e.Over:
			record.End(e.Leader)
		}
	}
}

func processCases() []testCase {
	return []testCase{
		{"KilledLeaderIsReplaced", killedLeaderIsReplaced},
		{"PausedLeaderIsFenced", stoppedLeaderIsFenced},
	}
}

// killedLeaderIsReplaced kills a leader in a process of its own, and starts it again.
func killedLeaderIsReplaced(t testing.TB, h Harness, group string) {
	i := h.open(t, group)
	members, leaders := Follow(t, i.Members), Follow(t, Elect(t, i, group, "observer").Observe)
	Join(t, i, member("here"))
	killed := NewRecord()
	child := h.start(t, group, "child", killed)
	first := killed.Await(t, cluster.Leader{})
	members.Until(t, "both", Lists("child", "here"))
	leaders.Until(t, "the child", Leads(first))

	ctx, cancel := context.WithTimeout(t.Context(), 3*maxWait)
	defer cancel()
	record := NewRecord()
	var leading sync.WaitGroup
	defer leading.Wait()
	defer cancel()
	leading.Go(func() { record.Lead(ctx, t, Elect(t, i, group, "here"), "here") })
	pass(t, h.TTL/4) // it is a candidate by now

	start := time.Now()
	if err := child.Kill(); err != nil {
		t.Fatal(err)
	}
	next := record.Await(t, cluster.Leader{})
	elected := time.Since(start)
	leaders.Until(t, "the next leader", Leads(next))
	observed := time.Since(start)
	members.Until(t, "one alone", Lists("here"))
	gone := time.Since(start)
	t.Logf("TTL %v: the next leader after %v, observed after %v, member gone after %v", h.TTL, elected, observed, gone)
	if next.Fence.Token <= first.Fence.Token {
		t.Errorf("term %d follows term %d", next.Fence.Token, first.Fence.Token)
	}
	if limit := 2*h.TTL + maxWait/4; max(elected, observed, gone) > limit {
		t.Errorf("that took longer than %v", limit)
	}
	h.start(t, group, "child", NewRecord())
	members.Until(t, "both again", Lists("child", "here"))
}

// pause stops p outside of a write, if a write that is stopped keeps the store locked.
func (h Harness) pause(t testing.TB, p *Process) {
	t.Helper()
	Wait(t, "pause outside of a write", func() bool {
		if err := testbed.Suspend(p.Process); err != nil {
			t.Fatal(err)
		}
		if h.Unlocked == nil || h.Unlocked(t) {
			return true
		}
		if err := testbed.Continue(p.Process); err != nil {
			t.Fatal(err)
		}
		return false
	})
}

// stoppedLeaderIsFenced stops a leader for longer than its term can last. It wakes up
// and writes, and its writes are refused.
func stoppedLeaderIsFenced(t testing.TB, h Harness, group string) {
	i := h.open(t, group)
	record := NewRecord()
	child := h.start(t, group, "child", record)
	first := record.Await(t, cluster.Leader{})
	ctx, cancel := context.WithTimeout(t.Context(), 3*maxWait)
	defer cancel()
	var leading sync.WaitGroup
	leading.Go(func() { record.Lead(ctx, t, Elect(t, i, group, "here"), "here") })
	record.Stop(first)
	h.pause(t, child)
	next := record.Await(t, first)
	if err := testbed.Continue(child.Process); err != nil {
		t.Fatal(err)
	}
	Wait(t, "end of the former leader", func() bool { return !record.Ended(first).IsZero() })
	record.AwaitWrites(t, next, 20)
	t.Logf("%d late writes were refused", record.Refusals(first))
	cancel()
	leading.Wait()
	record.Check(t, 2)
}
