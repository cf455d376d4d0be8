package dlocktest

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
)

// order is what a parent asks of a process. Without an owner it is an acquisition.
type order struct {
	ID, N      int
	Key, Owner string
	MaxWait    time.Duration // 0 makes one attempt
}

// report is what the process says: the answer to an order, or a loss.
type report struct {
	ID         int
	Fence      dlock.Fence
	Error      string
	Held, Lost bool
	Reason     dlock.Reason // of a loss
}

// Holder is a [dlock.Locker] in a process of its own, which a test can pause, resume or kill. The process is the test
// binary itself, running a test that calls [ServeHolder] or [ServeSemaphore].
type Holder struct {
	Process *os.Process
	maxWait time.Duration
	out     *json.Encoder // guarded by mu

	mu      sync.Mutex
	last    int
	answers map[int]chan report
	losses  map[string]*announced
}

// StartHolder starts the process, which runs the named test with additional
// environment variables. Its waits end after maxWait. It ends with the test.
func StartHolder(t testing.TB, test string, maxWait time.Duration, environment ...string) *Holder {
	t.Helper()
	//nolint:gosec // It is this very program.
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), environment...)
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
	_ = reports.Close()
	if err != nil {
		t.Fatal(err)
	}
	h := &Holder{
		Process: cmd.Process, maxWait: maxWait, out: json.NewEncoder(orders),
		answers: map[int]chan report{}, losses: map[string]*announced{},
	}
	var reading sync.WaitGroup
	reading.Go(func() { h.read(json.NewDecoder(in)) })
	t.Cleanup(func() {
		_ = orders.Close()
		_ = cmd.Process.Kill()
		reading.Wait()
		_ = cmd.Wait() // it was killed
		_ = in.Close()
	})
	return h
}

func (h *Holder) read(in *json.Decoder) {
	for {
		var got report
		if in.Decode(&got) != nil {
			return
		}
		h.mu.Lock()
		if got.Lost {
			if loss, ok := h.losses[got.Fence.Owner]; ok {
				loss.lose(&dlock.LostError{Fence: got.Fence, Reason: got.Reason})
				delete(h.losses, got.Fence.Owner)
			}
		} else {
			if got.Fence.Owner != "" { // before the next report can be that it is lost
				h.losses[got.Fence.Owner] = &announced{}
			}
			h.answers[got.ID] <- got
		}
		h.mu.Unlock()
	}
}

// ask sends o. A buffered channel takes the answer, also one that nobody waits for.
func (h *Holder) ask(ctx context.Context, o order) (report, error) {
	answer := make(chan report, 1)
	h.mu.Lock()
	h.last++
	o.ID = h.last
	h.answers[o.ID] = answer
	err := h.out.Encode(o)
	h.mu.Unlock()
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

// Holds reports whether the process holds something, as far as this one knows.
func (h *Holder) Holds() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.losses) > 0
}

// Semaphore returns the process as a [dlock.Semaphore], for a test that calls [ServeSemaphore].
func (h *Holder) Semaphore() dlock.Semaphore { return holderSemaphore{h} }

type holderSemaphore struct{ h *Holder }

// Acquire implements [dlock.Semaphore].
func (s holderSemaphore) Acquire(ctx context.Context, key string, n int) (*dlock.Lease, error) {
	return s.h.take(ctx, order{Key: key, N: n, MaxWait: s.h.maxWait})
}

// TryAcquire implements [dlock.Semaphore].
func (s holderSemaphore) TryAcquire(ctx context.Context, key string, n int) (*dlock.Lease, error) {
	return s.h.take(ctx, order{Key: key, N: n})
}

// Acquire implements [dlock.Locker].
func (h *Holder) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return h.take(ctx, order{Key: key, MaxWait: h.maxWait})
}

// TryAcquire implements [dlock.Locker].
func (h *Holder) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return h.take(ctx, order{Key: key})
}

func (h *Holder) take(ctx context.Context, o order) (*dlock.Lease, error) {
	got, err := h.ask(ctx, o)
	switch {
	case err != nil:
		return nil, err
	case got.Held:
		return nil, dlock.ErrHeld
	case got.Error != "":
		return nil, fmt.Errorf("%w: %s", dlock.ErrUncertain, got.Error)
	}
	h.mu.Lock()
	loss := h.losses[got.Fence.Owner]
	h.mu.Unlock()
	g := dlock.Grant{
		Key: o.Key, Fence: got.Fence,
		Release: func(ctx context.Context) error { return h.release(ctx, o.Key, got.Fence) },
	}
	if loss != nil { // otherwise it has been reported already: then the release returns it
		g.Renewer = loss
	}
	return dlock.NewLease(ctx, g), nil
}

func (h *Holder) release(ctx context.Context, key string, f dlock.Fence) error {
	h.mu.Lock()
	delete(h.losses, f.Owner)
	h.mu.Unlock()
	released, err := h.ask(ctx, order{Owner: f.Owner})
	switch {
	case err != nil:
		return err
	case released.Reason != "":
		return &dlock.LostError{Key: key, Fence: f, Reason: released.Reason}
	case released.Error != "":
		return errors.New(released.Error)
	}
	return nil
}

// announced is the Renewer of a grant that another process renews. It ends the lease when
// that process says that it has lost it.
type announced struct {
	mu   sync.Mutex
	hold *dlock.Hold
	loss error
}

// Keep implements [dlock.Renewer].
func (a *announced) Keep(_ context.Context, h *dlock.Hold) bool {
	a.mu.Lock()
	loss := a.loss
	a.hold = h
	a.mu.Unlock()
	if loss != nil {
		h.Lose(loss)
	}
	return true
}

// Forget implements [dlock.Renewer].
func (*announced) Forget(*dlock.Hold) <-chan struct{} { return nil }

func (a *announced) lose(loss error) {
	a.mu.Lock()
	h := a.hold
	a.loss = loss
	a.mu.Unlock()
	if h != nil {
		h.Lose(loss)
	}
}
