package broadcasttest

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/broadcast"
)

func closeEndsASubscription(t testing.TB, h Harness) {
	r := open(t, h, 1, 0)
	gone, blocked, stays := r.subscribe(0, "t"), r.subscribe(0, "t"), r.subscribe(0, "t")
	r.publish(0, "t", "1")
	stays.expect("1")
	blocked.expect("1")
	gone.Close()
	gone.Close()
	_, err := gone.Next(r.ctx)
	wantErr(t, err, broadcast.ErrClosed) // what was queued is discarded
	ended := make(chan error, 1)
	go func() {
		_, err := blocked.Next(r.ctx)
		ended <- err
	}()
	time.Sleep(pause) // it may block by now; both ways it must end
	blocked.Close()
	wantErr(t, <-ended, broadcast.ErrClosed)
	if n := r.buses[0].Stats().Subscriptions; n != 1 {
		t.Errorf("%d subscriptions, want 1", n)
	}
	r.publish(0, "t", "2")
	stays.expect("2")
	if gone.Len() != 0 {
		t.Errorf("%d events come to a closed subscription", gone.Len())
	}
}

// endOfRunEndsSubscriptions ends one of two buses.
func endOfRunEndsSubscriptions(t testing.TB, h Harness) {
	r := open(t, h, 2, 0)
	full, empty, other := r.subscribe(0, "t"), r.subscribe(0, "t"), r.subscribe(1, "t")
	r.publish(0, "t", "1")
	empty.expect("1")
	other.expect("1")
	r.stops[0]()
	full.expect("1") // what had come is read first
	for _, rd := range []reader{full, empty} {
		_, err := rd.Next(r.ctx)
		wantErr(t, err, broadcast.ErrClosed)
		rd.Close()
	}
	wantErr(t, r.buses[0].Publish("t", "2"), broadcast.ErrClosed)
	_, err := r.buses[0].Subscribe("t")
	wantErr(t, err, broadcast.ErrClosed)
	if s := r.buses[0].Stats(); s.Live || s.Subscriptions != 0 {
		t.Errorf("%+v after the end", s)
	}
	r.publish(1, "t", "3")
	other.expect("3")
}

func endOfTheContext(t testing.TB, h Harness) {
	r := open(t, h, 1, 0)
	rd, probe := r.subscribe(0, "t"), r.subscribe(0, "t")
	cause := errors.New("the page was closed")
	ctx, cancel := context.WithCancelCause(r.ctx)
	time.AfterFunc(pause, func() { cancel(cause) })
	_, err := rd.Next(ctx)
	wantErr(t, err, cause)
	r.publish(0, "t", "1")
	probe.expect("1")
	_, err = rd.Next(ctx)
	wantErr(t, err, cause) // though there is an event, which stays
	rd.expect("1")
	short, stop := context.WithTimeout(r.ctx, pause)
	defer stop()
	_, err = rd.Next(short)
	wantErr(t, err, context.DeadlineExceeded)
}

// concurrentUse does everything at once; the race detector watches.
func concurrentUse(t testing.TB, h Harness) {
	r := open(t, h, 2, room)
	var wg, readers sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 200 {
				if err := r.buses[i%2].Publish("t."+strconv.Itoa(n%3), strconv.Itoa(n)); err != nil {
					t.Errorf("Publish = %v", err)
				}
			}
		})
		wg.Go(func() {
			for range 50 {
				s, err := r.buses[i%2].Subscribe("t.*", "t.1")
				if err != nil {
					t.Errorf("Subscribe = %v", err)
					return
				}
				readers.Go(func() {
					for {
						if _, err := s.Next(r.ctx); err != nil {
							if !errors.Is(err, broadcast.ErrClosed) {
								t.Errorf("Next = %v", err)
							}
							return
						}
					}
				})
				_, _ = s.Len(), r.buses[i%2].Stats()
				s.Close()
			}
		})
	}
	wg.Wait()
	readers.Wait()
	if n := r.buses[0].Stats().Subscriptions + r.buses[1].Stats().Subscriptions; n != 0 {
		t.Errorf("%d subscriptions are left", n)
	}
	r.arrived(4 * 200)
	rd := r.subscribe(0, "t.0")
	r.publish(1, "t.0", "last")
	rd.expect("last")
}
