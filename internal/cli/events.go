package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/events"
	"example.com/shop/internal/platform/backoff"
)

const (
	// streamSilence is the time without any data, even a heartbeat, after which the client reconnects.
	streamSilence = 45 * time.Second

	// streamPause is the longest pause before another attempt, which doubles up to that.
	streamPause = 5 * time.Second
)

// follower follows the events of all instances, at one of those that the user names.
type follower struct {
	client

	query  url.Values
	json   bool
	others []string // where to go when this one stops, as the user names them: what members announce may be anybody's address
	lastID string
	retry  time.Duration
	joined bool // an instance has let it listen
	begun  bool // the first reset has been received
}

// eventsCommand prints the events of all instances until ctx ends.
func eventsCommand() Command {
	return Command{
		Name: "events", Summary: "Show the events of all instances until Ctrl-C",
		Details: "The command reconnects if the connection ends, and resumes after the last event. It reports on stderr if it may have missed events.",
		Examples: []Example{
			{"Everything that happens", "shop events"},
			{"Orders and stock of one SKU", "shop events --types order,stock --sku ticket"},
			{"A second instance to connect to if the first one stops", "shop events --url http://127.0.0.1:8080,http://127.0.0.1:8090"},
			{"Members and leaders as JSON, one event per line", "shop events --types member,leader --json"},
		},
		Exits: []Exit{{0, "interrupted by Ctrl-C"}, {1, "no instance at --url responds, or an instance refuses the request"}},
		Env:   adminKey,
		Define: func(f *Flags) Run {
			e := eventsFlags{}
			f.URLVar(&e.urls, "url", "http://"+app.DefaultListen, "`URL,...`: connect to an instance at one of these base URLs, and to the next if it stops")
			f.BoolVar(&e.json, "json", false, "print JSON, one event per line")
			f.Group("Filters")
			f.ListVar(&e.types, "types", typeNames(), "`TYPES`: show only events of these types, separated by commas")
			f.StringVar(&e.sku, "sku", "", "`SKU`: show only events about this SKU")
			f.StringVar(&e.order, "order", "", "`ID`: show only events about the order with this id")
			f.DefaultText("types", "all")
			f.DefaultText("sku", "all")
			f.DefaultText("order", "all")
			return func(ctx context.Context, _ []string) error { return e.follow(ctx, f.Process) }
		},
	}
}

// typeNames returns the names of all types of events.
func typeNames() []string {
	var names []string
	for _, each := range events.Types() {
		names = append(names, string(each))
	}
	return names
}

// eventsFlags are the flags of the command.
type eventsFlags struct {
	urls, sku, order string
	types            []string
	json             bool
}

func (e eventsFlags) follow(ctx context.Context, p Process) error {
	bases := strings.Split(e.urls, ",")
	query := make(url.Values)
	for name, value := range map[string]string{"types": strings.Join(e.types, ","), "sku": e.sku, "order": e.order} {
		if value != "" {
			query.Set(name, value)
		}
	}
	w := &follower{client: client{p, "events", bases[0], "listen"}, others: bases[1:], query: query, json: e.json}
	return w.run(ctx)
}

// run continues until ctx ends, or an instance refuses for good.
func (f *follower) run(ctx context.Context) error {
	pause := time.Duration(0)
	for untried := len(f.others); ; untried-- {
		heard, err := f.connect(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // Ctrl-C is how it ends.
		}
		if final, ok := errors.AsType[finalError](err); ok {
			return final.error
		}
		if untried == 0 && !f.joined {
			return err
		}
		pause = min(max(2*pause, 100*time.Millisecond), streamPause)
		if heard {
			pause = cmp.Or(f.retry, time.Second)
		}
		fmt.Fprintf(f.p.Stderr, "%v; retrying\n", err)
		f.move()
		if !backoff.Sleep(ctx, pause/2+rand.N(pause)) {
			return nil
		}
	}
}

// move chooses the next instance.
func (f *follower) move() {
	all := slices.Concat(f.others, []string{f.base})
	f.base, f.others = all[0], all[1:]
}

// finalError is one after which another attempt is of no use.
type finalError struct{ error }

// connect follows one stream to its end, and reports whether there was one.
func (f *follower) connect(ctx context.Context) (heard bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(streamSilence, func() {
		cancel(fmt.Errorf("events: %s has sent nothing for %s", f.base, streamSilence))
	})
	defer silence.Stop()
	req, err := f.request(ctx, http.MethodGet, "/api/v1/events?"+f.query.Encode(), nil)
	if err != nil {
		return false, finalError{err}
	}
	if f.lastID != "" {
		req.Header.Set("Last-Event-ID", f.lastID)
	}
	resp, err := f.do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("X-Instance-Id") == "" {
		answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		err = errors.Join(f.refused(resp, answer), err)
		if resp.StatusCode < http.StatusInternalServerError && resp.Header.Get("X-Instance-Id") != "" {
			return false, finalError{err}
		}
		return false, err // also if another program now listens on the port of an instance
	}
	if !f.joined {
		fmt.Fprintf(f.p.Stderr, "Following events at %s (instance %s). Ctrl-C ends.\n", f.base, resp.Header.Get("X-Instance-Id"))
	}
	f.joined = true
	for m, err := range events.Messages(resp.Body) {
		if err != nil {
			return true, fmt.Errorf("events: the stream of %s has ended: %w", f.base, cmp.Or(context.Cause(ctx), err))
		}
		silence.Reset(streamSilence)
		f.lastID, f.retry = cmp.Or(m.ID, f.lastID), cmp.Or(m.Retry, f.retry) // a stream may have sent neither yet
		if err := f.show(m); err != nil {
			return true, finalError{err}
		}
	}
	return true, nil
}

// show prints a message.
func (f *follower) show(m events.Message) error {
	switch {
	case m.Data == "":
		return nil
	case m.Kind == "reset":
		var r struct{ Reason events.Reason }
		if err := json.Unmarshal([]byte(m.Data), &r); err == nil && (f.begun || r.Reason != events.Start) {
			fmt.Fprintf(f.p.Stderr, "Events may be missing here (%s).\n", r.Reason)
		}
		f.begun = true
		return nil
	case f.json:
		_, err := fmt.Fprintln(f.p.Stdout, m.Data)
		return err
	}
	var e events.Event
	if err := json.Unmarshal([]byte(m.Data), &e); err != nil {
		return fmt.Errorf("events: %s: %w", f.base, err)
	}
	_, err := fmt.Fprintf(f.p.Stdout, "%s  %-12s  %-6s  %s\n", e.At.Format("15:04:05.000"), e.Instance, e.Type, describe(e))
	return err
}

// describe says in some words what has happened.
func describe(e events.Event) string {
	switch {
	case e.Order != nil:
		var lines []string
		for _, it := range e.Order.Items {
			lines = append(lines, fmt.Sprint(it.Quantity, " ", it.SKU))
		}
		return strings.TrimSpace(fmt.Sprintf("%s %s of %s: %s %s", e.Order.ID, e.Order.Status, e.Order.CustomerID, strings.Join(lines, ", "), e.Order.Reason))
	case e.Stock != nil:
		return fmt.Sprintf("%s: %d available, %d reserved of %d", e.Stock.SKU, e.Stock.Available, e.Stock.Reserved, e.Stock.OnHand)
	case e.Lock != nil:
		return fmt.Sprintf("%s: fencing token %d of %s, %d leases, %d orders wait", e.Lock.SKU, e.Lock.Fence, e.Lock.Strategy, e.Lock.Count, e.Lock.Waiting)
	case e.Timer != nil:
		var outcomes []string
		for name, n := range e.Timer.Outcomes {
			outcomes = append(outcomes, name+" "+strconv.FormatInt(n, 10))
		}
		slices.Sort(outcomes)
		return e.Timer.Kind + ": " + strings.Join(outcomes, ", ")
	case e.Member != nil && e.Member.Left:
		return e.Member.Name + " has left"
	case e.Member != nil:
		return fmt.Sprintf("%s has joined, as %s at %s", e.Member.Name, e.Member.Role, e.Member.Address)
	case e.Leader != nil && e.Leader.Ended:
		return fmt.Sprintf("%s lost leadership, term %d has ended", e.Leader.Name, e.Leader.Term)
	case e.Leader != nil:
		return fmt.Sprintf("%s leads, term %d", e.Leader.Name, e.Leader.Term)
	}
	return ""
}
