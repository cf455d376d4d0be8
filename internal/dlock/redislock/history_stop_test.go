package redislock_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

// The test binary is also the process that is stopped: it takes and releases what
// its parent asks for, and reports what it loses.
const (
	holderServer    = "SHOP_TEST_HOLDER_REDIS"
	holderContender = "SHOP_TEST_HOLDER_CONTENDER"
)

// order is what the parent asks for. Without an owner it is an acquisition.
type order struct {
	ID, N      int
	Key, Owner string
	Patience   time.Duration // 0 makes one attempt
}

// report is what the process says: the answer to an order, or a loss.
type report struct {
	ID         int
	Fence      dlock.Fence
	Error      string
	Held, Lost bool
	Reason     dlock.Reason // of a loss
}

// TestHistoryOfStoppedHolders stops a process for longer than the TTL, wherever it
// is. It wakes up and believes in what others have taken meanwhile; it must find out.
func TestHistoryOfStoppedHolders(t *testing.T) {
	t.Parallel()
	histories(t, contenders(), 3, true, func(t testing.TB, tr *trial) {
		url := testbedtest.Redis(t)
		tr.load.Hold, tr.least = ttl/2, 10
		far := startHolder(t, url, tr.name)
		stopped := []*dlocktest.HistoryClient{tr.Semaphore(far), tr.Semaphore(far), tr.Semaphore(far)}
		tr.during(t, append(tr.clients(t, 2, url), stopped...), func() {
			for range testbedtest.Size(2, 20) {
				sleep(t, tr.between(0, ttl/2))
				waitFor(t, "a holder to stop", far.holds)
				tr.Stop(func() {
					if err := testbed.Suspend(far.cmd.Process); err != nil {
						t.Error(err)
					}
					sleep(t, ttl+tr.between(0, ttl/2))
					if err := testbed.Continue(far.cmd.Process); err != nil {
						t.Error(err)
					}
				}, stopped...)
			}
		})
	})
}

// remote is the service of another process, seen from this one.
type remote struct {
	cmd *exec.Cmd
	out *json.Encoder // guarded by mu

	mu      sync.Mutex
	last    int
	answers map[int]chan report
	losses  map[string]chan error
}

// startHolder starts the process. It ends with the test.
func startHolder(t testing.TB, url, contender string) *remote {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "-test.run=^TestHolderProcess$")
	cmd.Env = append(os.Environ(), holderServer+"="+url, holderContender+"="+contender)
	orders, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, reports, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{reports}
	err = cmd.Start()
	reports.Close()
	if err != nil {
		t.Fatal(err)
	}
	r := &remote{cmd: cmd, out: json.NewEncoder(orders), answers: map[int]chan report{}, losses: map[string]chan error{}}
	var reading sync.WaitGroup
	reading.Go(func() { r.read(json.NewDecoder(in)) })
	t.Cleanup(func() {
		orders.Close()
		cmd.Process.Kill()
		reading.Wait()
		cmd.Wait()
		in.Close()
	})
	return r
}

func (r *remote) read(in *json.Decoder) {
	for {
		var got report
		if in.Decode(&got) != nil {
			return
		}
		r.mu.Lock()
		if got.Lost {
			if loss, ok := r.losses[got.Fence.Owner]; ok {
				loss <- &dlock.LostError{Fence: got.Fence, Reason: got.Reason}
				delete(r.losses, got.Fence.Owner)
			}
		} else {
			r.answers[got.ID] <- got
		}
		r.mu.Unlock()
	}
}

// ask sends o. A buffered channel takes the answer, also one that nobody waits for.
func (r *remote) ask(ctx context.Context, o order) (report, error) {
	answer := make(chan report, 1)
	r.mu.Lock()
	r.last++
	o.ID = r.last
	r.answers[o.ID] = answer
	err := r.out.Encode(o)
	r.mu.Unlock()
	if err != nil {
		return report{}, err
	}
	select {
	case got := <-answer:
		return got, nil
	case <-ctx.Done():
		return report{}, fmt.Errorf("%w: %w", dlock.ErrUncertain, ctx.Err())
	}
}

// holds reports whether the process holds something, as far as this one knows.
func (r *remote) holds() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.losses) > 0
}

// Acquire implements [dlock.Semaphore].
func (r *remote) Acquire(ctx context.Context, key string, n int) (*dlock.Lease, error) {
	return r.take(ctx, order{Key: key, N: n, Patience: 8 * ttl})
}

// TryAcquire implements [dlock.Semaphore].
func (r *remote) TryAcquire(ctx context.Context, key string, n int) (*dlock.Lease, error) {
	return r.take(ctx, order{Key: key, N: n})
}

func (r *remote) take(ctx context.Context, o order) (*dlock.Lease, error) {
	got, err := r.ask(ctx, o)
	switch {
	case err != nil:
		return nil, err
	case got.Held:
		return nil, dlock.ErrHeld
	case got.Error != "":
		return nil, fmt.Errorf("%w: %s", dlock.ErrUncertain, got.Error)
	}
	lost := make(chan error, 1)
	r.mu.Lock()
	r.losses[got.Fence.Owner] = lost
	r.mu.Unlock()
	return dlock.NewLease(ctx, dlock.Grant{
		Key: o.Key, Fence: got.Fence, Lost: lost,
		Release: func(ctx context.Context) error {
			r.mu.Lock()
			delete(r.losses, got.Fence.Owner)
			r.mu.Unlock()
			released, err := r.ask(ctx, order{Owner: got.Fence.Owner})
			switch {
			case err != nil:
				return err
			case released.Reason != "":
				return &dlock.LostError{Key: o.Key, Fence: got.Fence, Reason: released.Reason}
			case released.Error != "":
				return errors.New(released.Error)
			}
			return nil
		},
	}), nil
}
