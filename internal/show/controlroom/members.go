package controlroom

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/show/fleet"
)

// The states of an instance.
const (
	running  = "running"
	standing = "paused"
	starting = "starting"
	stopping = "stopping"
	killing  = "killing"

	ended   = "ended" // by itself
	stopped = "stopped"
	killed  = "killed"
)

// over is the state of an instance after its process has ended in another one.
var over = map[string]string{stopping: stopped, killing: killed}

// member is an instance and its ways to the stores. The room's mu protects the fields that change.
type member struct {
	name     string
	number   int
	env      fleet.Stores   // with the addresses of the proxies
	redis    *testbed.Proxy // nil: no fault of the line can be made
	database *testbed.Proxy

	fleet    *fleet.Fleet // of one; nil until it is started
	url      string
	state    string
	cutOff   bool            // from Redis
	serving  context.Context //nolint:containedctx // It is the time for which the instance answers.
	end      context.CancelFunc
	memory   int64   // bytes
	latency  float64 // milliseconds of the latest question whether it is ready
	answered bool    // that one
	load     load
}

// instance requires that the member was started.
func (m *member) instance() *fleet.Instance { return m.fleet.Instances()[0] }

// start starts the process of an instance, and returns when it serves.
func (r *Room) start(ctx context.Context, m *member) error {
	r.mu.Lock()
	if m.state != "" && !slices.Contains([]string{ended, stopped, killed}, m.state) {
		defer r.mu.Unlock()
		return conflict{fmt.Errorf("%s is %s", m.name, m.state)}
	}
	m.state = starting
	r.notify()
	r.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	f, err := fleet.Start(limited, fleet.Config{
		Executable: r.Executable, Dir: r.stores.Dir, First: m.number, N: 1, Env: append(m.env.Env(), traceEnv()...),
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.notify()
	if err != nil {
		m.state = ended
		return err
	}
	m.fleet, m.state = f, running
	m.url = m.instance().URL()
	m.serving, m.end = context.WithCancel(ctx)
	in := m.instance()
	r.tasks.Go(func() {
		select {
		case <-in.Ended():
		case <-ctx.Done():
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		m.state = cmp.Or(over[m.state], ended)
		m.end()
		r.notify()
	})
	return nil
}

// conflict is refused because of the state that something is in.
type conflict struct{ error }

// unavailable failed because an instance did, and may be tried again.
type unavailable struct{ error }

// signal changes the state of an instance that is in one of the states from. Requests that the room has passed on to it
// are cut off, because it will not answer them.
func (r *Room) signal(m *member, from []string, to string, do func(*fleet.Instance) error) error {
	r.mu.Lock()
	if !slices.Contains(from, m.state) {
		defer r.mu.Unlock()
		return conflict{fmt.Errorf("%s is %s", m.name, m.state)}
	}
	in, end := m.instance(), m.end
	if m.state = to; to == running {
		m.serving, m.end = context.WithCancel(context.WithoutCancel(m.serving))
	}
	r.notify()
	r.mu.Unlock()
	end()
	return do(in)
}

// line makes the faults of the proxies what the room says they are. It requires mu.
func (r *Room) line() error {
	var errs []error
	set := func(p *testbed.Proxy, swallow, late bool) {
		if p == nil {
			return
		}
		if late {
			p.Delay(slowness)
		} else {
			p.Delay(0)
		}
		if swallow {
			p.BlackHole()
		} else {
			errs = append(errs, p.Pass())
		}
	}
	for _, m := range r.lines() {
		set(m.redis, m.cutOff || r.redisIs == paused, r.redisIs == slow)
		set(m.database, r.database == paused, r.database == slow)
	}
	r.notify()
	return errors.Join(errs...)
}

// slowness is what a slow store adds to each round trip.
const slowness = 20 * time.Millisecond

// measureEvery is the time between two measurements of all instances, and of the stores.
const measureEvery = 5 * time.Second

// measure measures the instances, until ctx ends.
func (r *Room) measure(ctx context.Context) {
	client := &http.Client{Timeout: time.Second}
	for continues := true; continues; continues = backoff.Sleep(ctx, measureEvery) {
		for _, m := range r.members {
			r.mu.Lock()
			url, in, state := m.url, m.instance(), m.state
			r.mu.Unlock()
			if state != running {
				continue
			}
			memory, began := resident(in.PID()), time.Now()
			ok := get(ctx, client, url+"/readyz", nil)
			latency := milliseconds(time.Since(began))
			var said struct{ Load load }
			get(ctx, client, url+"/api/v1/cluster", &said)
			r.mu.Lock()
			m.memory, m.latency, m.answered, m.load = memory, latency, ok, said.Load
			r.mu.Unlock()
		}
		r.mu.Lock()
		r.notify()
		r.mu.Unlock()
	}
}

// load is what an instance says of itself, as the API has it. It is zero if the instance does not respond.
type load struct {
	Permits  int  `json:"permits"`  // over all instances
	InUse    int  `json:"in_use"`   // by orders of this instance
	Degraded bool `json:"degraded"` // it uses its share, as Redis does not respond
	Waiting  int  `json:"waiting"`  // orders that wait for units of a sold-out SKU
}

// get asks an instance, and reports whether it responds with 200. It reads the response into v, unless v is nil.
func get(ctx context.Context, client *http.Client, url string, v any) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil) //nolint:gosec // its host is an instance of the room
	if err != nil {
		return false
	}
	resp, err := client.Do(req) //nolint:gosec // as above
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK && (v == nil || json.NewDecoder(resp.Body).Decode(v) == nil)
}

// resident returns the bytes of memory of a process, or 0 if the system does not report them.
func resident(pid int) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
