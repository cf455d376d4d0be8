package testbedtest

import (
	"fmt"
	"time"
)

// beat is how often a watcher reads the clock.
const beat = 10 * time.Millisecond

// watcher notices that nothing ran: its own timer came late.
type watcher struct {
	stop, stopped chan struct{}

	began, last    time.Time
	longest, total time.Duration
}

// watch begins to watch.
func watch() *watcher {
	now := time.Now()
	w := &watcher{stop: make(chan struct{}), stopped: make(chan struct{}), began: now, last: now}
	go w.run()
	return w
}

func (w *watcher) run() {
	defer close(w.stopped)
	ticks := time.NewTicker(beat)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			w.look()
		case <-w.stop:
			w.look()
			return
		}
	}
}

// look asks both clocks: the monotonic one may not count while a whole machine is stopped.
func (w *watcher) look() {
	now := time.Now()
	late := max(now.Sub(w.last), now.Round(0).Sub(w.last.Round(0))) - beat
	w.last = now
	if late < beat {
		return
	}
	w.longest = max(w.longest, late)
	w.total += late
}

// end returns for how long nothing ran, in words, and whether that is too long for a test of times.
func (w *watcher) end() (stood string, still bool) {
	close(w.stop)
	<-w.stopped
	all := w.last.Sub(w.began)
	stood = fmt.Sprintf("nothing ran for %v of %v, and for %v at once",
		w.total.Round(time.Millisecond), all.Round(time.Millisecond), w.longest.Round(time.Millisecond))
	return stood, w.longest >= standstill || w.total >= all/standstillShare
}
