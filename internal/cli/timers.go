package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"

	"example.com/shop/internal/app"
	"example.com/shop/internal/httpapi"
)

// The types of timers that the service has, for help and examples.
const (
	expireTimer = "order.expire"
	placeTimer  = "order.place"
)

// adminURL is the flag with the URL of an admin listener. It differs from --url, because a shell that sets SHOP_URL
// for the public listener runs these commands, too.
const adminURL = "admin-url"

// timersCommand manages the timers of a running instance.
func timersCommand() Command {
	const kind = expireTimer
	return Command{
		Name: "timers", Summary: "Manage the timers of running instances",
		Details: "The commands use the admin listener of an instance, see shop help serve. Timers of the type " + kind +
			" expire unpaid orders; timers of the type " + placeTimer + " retry queued orders. " +
			"A fired timer decides nothing: its handler still checks whether the order is due.",
		Commands: []Command{
			timersList(),
			timersOne("get", "KIND ID", "Show one timer, with the whole of its last error", (*timersCall).get,
				Example{"One timer", "shop timers get " + kind + " ID"}, Example{"As JSON, with its traceparent", "shop timers get " + kind + " ID --json"}),
			timersOne("fire", "KIND ID", "Make a timer due now", (*timersCall).fire,
				Example{"One timer", "shop timers fire " + kind + " ID"}, Example{"At another instance", "shop timers fire " + kind + " ID --admin-url http://127.0.0.1:8091"}),
			timersOne("redrive", "KIND [ID...]", "Retry dead timers: the given ones, or all of a type", (*timersCall).redrive,
				Example{"All dead timers", "shop timers redrive " + kind}, Example{"Two of them", "shop timers redrive " + kind + " ID1 ID2"}),
			timersOne("pause", "KIND", "Stop the handling of a type on all instances", (*timersCall).pause,
				Example{"No order expires until the pause ends", "shop timers pause " + kind}, Example{"As JSON", "shop timers pause " + kind + " --json"}),
			timersOne("resume", "KIND", "End a pause", (*timersCall).resume,
				Example{"Orders expire again", "shop timers resume " + kind}, Example{"As JSON", "shop timers resume " + kind + " --json"}),
		},
	}
}

// timersCall is one command with its flags and arguments.
type timersCall struct {
	p           Process
	url         string
	json        bool
	kind, state string
	limit       int
}

// define defines the flags that all of these commands have.
func (t *timersCall) define(f *Flags) {
	t.p = f.Process
	f.URLVar(&t.url, adminURL, "http://"+app.DefaultAdminListen, "`URL`: ask the instance whose --admin-listen this is; any instance responds for all")
	f.BoolVar(&t.json, "json", false, "print JSON")
}

func timersList() Command {
	return Command{
		Name: "list", Summary: "Show stored timers, in the order of their next attempts", Env: adminKey,
		Examples: []Example{
			{"The next 100 timers", "shop timers list"},
			{"Dead timers, which wait for a decision", "shop timers list --state dead"},
			{"All timers of a type as JSON", "shop timers list --kind " + expireTimer + " --limit 1000000 --json"},
		},
		Define: func(f *Flags) Run {
			t := &timersCall{}
			t.define(f)
			f.StringVar(&t.kind, "kind", "", "`KIND`: show only timers of this type")
			f.ChoiceVar(&t.state, "state", "", []string{"open", "dead"}, "`STATE`: show only timers in this state")
			f.IntVar(&t.limit, "limit", 100, "`TIMERS`: show at most this many timers, 1 to 1000000")
			f.DefaultText("kind", "all types")
			f.DefaultText("state", "both")
			return func(ctx context.Context, _ []string) error { return t.list(ctx) }
		},
	}
}

// timersOne returns a command on one type of timers.
func timersOne(name, args, summary string, run func(*timersCall, context.Context, []string) error, examples ...Example) Command {
	return Command{Name: name, Args: args, Summary: summary, Env: adminKey, Examples: examples, Define: func(f *Flags) Run {
		t := &timersCall{}
		t.define(f)
		return func(ctx context.Context, args []string) error { return run(t, ctx, args) }
	}}
}

// ask asks the instance below the path of timers.
func (t *timersCall) ask(ctx context.Context, method, path string, v any) error {
	return client{t.p, "timers", t.url, "admin-listen"}.ask(ctx, method, "/api/v1/timers"+path, nil, v)
}

func (t *timersCall) list(ctx context.Context) error {
	if t.limit < 1 || t.limit > 1_000_000 {
		return UsageError{fmt.Errorf("--limit %d: want 1 to 1000000", t.limit)}
	}
	all := httpapi.TimerPage{Timers: []httpapi.Timer{}}
	for {
		query := url.Values{"limit": {fmt.Sprint(min(1000, t.limit-len(all.Timers)))}}
		for name, v := range map[string]string{"kind": t.kind, "state": strings.ToUpper(t.state)} {
			if v != "" {
				query.Set(name, v)
			}
		}
		if all.Next != nil {
			query.Set("cursor", *all.Next)
		}
		var page httpapi.TimerPage
		if err := t.ask(ctx, http.MethodGet, "?"+query.Encode(), &page); err != nil {
			return err
		}
		all.Timers, all.Next = append(all.Timers, page.Timers...), page.Next
		if all.Next == nil || len(all.Timers) >= t.limit {
			break
		}
	}
	if t.json {
		return t.print(all)
	}
	if err := t.table(all.Timers, 60); err != nil {
		return err
	}
	if all.Next != nil {
		fmt.Fprintf(t.p.Stderr, "More than %d timers exist: raise --limit to show them.\n", len(all.Timers))
	}
	return nil
}

func (t *timersCall) get(ctx context.Context, args []string) error {
	var timer httpapi.Timer
	if err := t.ask(ctx, http.MethodGet, timerPath(args[0], args[1]), &timer); err != nil {
		return err
	}
	if t.json {
		return t.print(timer)
	}
	return t.table([]httpapi.Timer{timer}, 2000)
}

func (t *timersCall) fire(ctx context.Context, args []string) error {
	return t.change(ctx, timerPath(args[0], args[1])+"/fire", args[1]+" is due now")
}

func (t *timersCall) redrive(ctx context.Context, args []string) error {
	path := kindPath(args[0]) + "/redrive"
	if len(args) == 1 {
		return t.change(ctx, path, "")
	}
	for _, id := range args[1:] {
		if err := t.change(ctx, path+"?id="+url.QueryEscape(id), ""); err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
	}
	return nil
}

func (t *timersCall) pause(ctx context.Context, args []string) error {
	return t.change(ctx, kindPath(args[0])+"/pause", args[0]+" is paused; all instances apply it within about a second")
}

func (t *timersCall) resume(ctx context.Context, args []string) error {
	return t.change(ctx, kindPath(args[0])+"/resume", args[0]+" is not paused; all instances apply it within about a second")
}

func kindPath(kind string) string { return "/" + url.PathEscape(kind) }

func timerPath(kind, id string) string { return kindPath(kind) + "/" + url.PathEscape(id) }

// change posts to path and prints the result, in the given words or in those of
// the answer.
func (t *timersCall) change(ctx context.Context, path, words string) error {
	var answer struct {
		Kind   string `json:"kind"`
		Timers *int   `json:"timers,omitempty"`
		Paused *bool  `json:"paused,omitempty"`
	}
	if err := t.ask(ctx, http.MethodPost, path, &answer); err != nil {
		return err
	}
	switch {
	case t.json:
		return t.print(answer)
	case words == "" && answer.Timers != nil:
		words = fmt.Sprintf("%d dead timers of the type %s are due now", *answer.Timers, answer.Kind)
	}
	_, err := fmt.Fprintln(t.p.Stdout, words)
	return err
}

func (t *timersCall) print(v any) error { return printIndented(t.p.Stdout, v) }

// table prints timers, with at most longest characters of what failed.
func (t *timersCall) table(timers []httpapi.Timer, longest int) error {
	const moment = "2006-01-02T15:04:05.000Z07:00"
	w := tabwriter.NewWriter(t.p.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KIND\tID\tSTATE\tDUE\tNEXT\tATTEMPT\tPARTITION\tLAST ERROR")
	for _, r := range timers {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", r.Kind, r.ID, r.State,
			r.Due.UTC().Format(moment), r.Next.UTC().Format(moment), r.Attempt, r.Partition, oneLine(r.LastError, longest))
	}
	return w.Flush()
}
