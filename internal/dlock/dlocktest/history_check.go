package dlocktest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// checkTimeout bounds the search for an order that explains a history. A search that
// does not end is a failure.
const checkTimeout = 2 * time.Minute

// Check fails the test unless an order of the operations exists that the model
// allows. It then writes the history to the folder for artifacts of the test, as a
// page to look at and as text.
func (h *History) Check(t testing.TB, model porcupine.Model) {
	t.Helper()
	if err := h.wellFormed(); err != nil {
		testbedtest.Final(t, "%v", err)
		t.FailNow()
	}
	ops := h.Operations()
	start := time.Now()
	result, info := porcupine.CheckOperationsVerbose(model, ops, checkTimeout)
	t.Logf("%d operations, %d grants, %d doubts, checked in %v: %s",
		len(ops), h.Grants(), h.Disruptions(), time.Since(start).Round(time.Millisecond), result)
	if result == porcupine.Ok {
		return
	}
	folder := t.ArtifactDir()
	err := errors.Join(
		porcupine.VisualizePath(model, info, filepath.Join(folder, "history.html")),
		os.WriteFile(filepath.Join(folder, "history.txt"), text(ops), 0o600),
	)
	t.Errorf("no order explains the history (%s); it is in %s, which go test -artifacts keeps; %v", result, folder, err)
}

// Operations is the history as porcupine takes it.
//
// An open operation could take effect at any later time, and its effect can only permit more from then on. So the
// earliest moment allows everything that a later one would. Open operations end at once, or when there is something
// for them to have an effect on. Operations that never end would make the search exponential.
func (h *History) Operations() []porcupine.Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	events := slices.Concat(h.events, h.expired())
	granted := map[string]time.Duration{}
	for _, e := range events {
		if e.granted() {
			granted[e.outcome.Fence.Owner] = e.to
		}
	}
	ops := make([]porcupine.Operation, 0, len(events))
	for _, e := range events {
		o := e.outcome
		o.Queued = o.Result == Refused && (h.SplitVotes || h.queued(e))
		ops = append(ops, porcupine.Operation{
			ClientId: e.client, Input: e.call, Output: o,
			Call: int64(e.from), Return: int64(cmp.Or(e.to, max(e.from, granted[e.call.Owner]))),
		})
	}
	return ops
}

// expired returns an expiry for each grant that a fault may have affected: requested before the fault ended, and not
// over before it began.
func (h *History) expired() []*event {
	ends := map[string]time.Duration{}
	for _, e := range h.events {
		if (e.call.Op == OpRelease || e.call.Op == OpSleep) && e.to != 0 {
			ends[e.call.Owner] = e.to
		}
	}
	var expiries []*event
	for _, f := range h.faults {
		for _, e := range h.events {
			if !e.granted() || f.of != nil && !slices.Contains(f.of, e.by) || e.from > f.to || cmp.Or(ends[e.outcome.Fence.Owner], math.MaxInt64) < f.from {
				continue
			}
			expiries = append(expiries, &event{
				client: h.clients + 1 + len(expiries), from: max(f.from, e.from),
				call: Call{Op: OpExpire, Key: e.call.Key, Owner: e.outcome.Fence.Owner},
			})
		}
	}
	return expiries
}

// queued reports whether somebody waited while e was refused. Waiting explains the
// refusal of one permit of several; a lock that is handed on is never seen free.
func (h *History) queued(e *event) bool {
	return slices.ContainsFunc(h.events, func(w *event) bool {
		return w.call.Op == OpAcquire && w.call.Key == e.call.Key && (h.Faulty || w.call.N > 1 || e.call.N > 1) &&
			w.from < e.to && (w.to == 0 || w.to > e.from)
	})
}

// wellFormed reports mistakes of the recording, and owners that come twice.
func (h *History) wellFormed() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	busy := map[int]time.Duration{}
	owners := map[string]bool{}
	for _, e := range h.events { // in the order of from, except for expiries, whose clients have no other event
		if until := busy[e.client]; until > e.from {
			return fmt.Errorf("client %d makes two calls at once, at %v", e.client, e.from)
		}
		busy[e.client] = cmp.Or(e.to, math.MaxInt64)
		if !e.granted() {
			continue
		}
		if o := e.outcome.Fence.Owner; o == "" || owners[o] {
			return fmt.Errorf("owner %q of token %d is not unique", o, e.outcome.Fence.Token)
		}
		owners[e.outcome.Fence.Owner] = true
	}
	return nil
}

// CheckLossBeforeNextGrant fails the test if a holder was notified of its loss only after the next grant. Paused
// holders and grants that the store lost are exempt. Check finds the same through the instants of expiries, with a
// less readable report.
func (h *History) CheckLossBeforeNextGrant(t testing.TB) {
	t.Helper()
	const most = 5 // more would say no more
	found, ops := 0, h.Operations()
	ends := map[string]int64{} // when the lease validity of an owner ended
	for _, op := range ops {
		c := op.Input.(Call)
		if end, ok := ends[c.Owner]; (c.Op == OpRelease || c.Op == OpExpire || c.Op == OpSleep) && (!ok || op.Call < end) {
			ends[c.Owner] = op.Call
		}
	}
	for _, part := range byKey(ops) {
		part = slices.DeleteFunc(part, func(op porcupine.Operation) bool {
			o := op.Output.(Outcome)
			return o.Fence.Owner == ""
		})
		slices.SortFunc(part, func(a, b porcupine.Operation) int {
			return cmp.Compare(a.Output.(Outcome).Fence.Token, b.Output.(Outcome).Fence.Token)
		})
		for i := 1; i < len(part); i++ {
			before := part[i-1].Output.(Outcome).Fence.Owner
			if end, ok := ends[before]; (!ok || end > part[i].Return) && found < most {
				found++
				t.Errorf("%s: %s and then %s, while the former holder considered its lease valid for another %v",
					part[i].Input.(Call).Key, describe(part[i-1].Input, part[i-1].Output), describe(part[i].Input, part[i].Output),
					time.Duration(end-part[i].Return))
			}
		}
	}
}

// text is the history in the order of its calls, a line each.
func text(ops []porcupine.Operation) []byte {
	ops = slices.SortedFunc(slices.Values(ops), func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var out bytes.Buffer
	for _, op := range ops {
		fmt.Fprintf(&out, "%v\t%v\tclient %d\t%s\n", time.Duration(op.Call), time.Duration(op.Return), op.ClientId, describe(op.Input, op.Output))
	}
	return out.Bytes()
}

// CheckFences fails the test if the tokens of a lock, or of the writers of a read/write lock, do not grow. A token that
// was requested after another one was granted must be greater, and no token may repeat. Check checks this and more, and
// may be wrong on a machine that was paused. CheckFences uses the order of events alone, and is final.
func (h *History) CheckFences(t testing.TB) {
	t.Helper()
	const most = 5 // more would say no more
	all := h.disorder()
	for _, v := range all[:min(len(all), most)] {
		testbedtest.Final(t, "%s", v)
	}
}

// disorder returns the tokens that are not in order, in words.
func (h *History) disorder() (all []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	type name struct {
		key   string
		token uint64
	}
	given := map[name]string{}      // owners of exclusive grants
	greatest := map[string]uint64{} // by key, of the grants that had been made
	asked := slices.DeleteFunc(slices.Clone(h.events), func(e *event) bool { return !e.granted() })
	made := slices.SortedFunc(slices.Values(asked), func(a, b *event) int { return cmp.Compare(a.to, b.to) })
	for _, e := range asked { // events are in the order of from
		for ; len(made) > 0 && made[0].to < e.from; made = made[1:] {
			before := made[0]
			greatest[before.call.Key] = max(greatest[before.call.Key], before.outcome.Fence.Token)
		}
		if !e.exclusive() {
			continue
		}
		f := e.outcome.Fence
		if last := greatest[e.call.Key]; f.Token <= last {
			all = append(all, fmt.Sprintf("%s: token %d of %s, asked for at %v, when %d had been granted",
				e.call.Key, f.Token, f.Owner, e.from.Round(time.Microsecond), last))
		}
		if other, twice := given[name{e.call.Key, f.Token}]; twice {
			all = append(all, fmt.Sprintf("%s: token %d of %s and of %s", e.call.Key, f.Token, other, f.Owner))
		}
		given[name{e.call.Key, f.Token}] = f.Owner
	}
	return all
}

// exclusive says that a grant is not that of a reader.
func (e *event) exclusive() bool { return !e.by.share || e.call.N == RWPermits }
