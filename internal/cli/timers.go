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

// Timers manages the timers of a running instance.
func Timers(ctx context.Context, f *Flags, args []string) error {
	t := &timersCall{p: f.Process}
	command := func(name, args, what string, least, most int, run func(context.Context, []string) error) Command {
		return Command{Name: name, Args: args, What: what, Run: func(ctx context.Context, f *Flags, args []string) error {
			rest, err := t.parse(f, name, args, least, most)
			if err != nil {
				return err
			}
			return run(ctx, rest)
		}}
	}
	return Group{
		What: "shop timers manages the timers of a running instance, by its --admin-listen.",
		Commands: []Command{
			command("list", "", "show stored timers, those that are tried soonest first", 0, 0, t.list),
			command("get", "KIND ID", "show one timer", 2, 2, t.get),
			command("fire", "KIND ID", "make a timer due now; its handler decides whether there is anything to do", 2, 2, t.fire),
			command("redrive", "KIND [ID...]", "try dead timers again: the given ones, or all of the kind", 1, 1000, t.redrive),
			command("rebuild", "KIND", "add every open timer to the index again", 1, 1, t.rebuild),
			command("pause", "KIND", "stop the handling of a kind on all instances", 1, 1, t.pause),
			command("resume", "KIND", "end a pause", 1, 1, t.resume),
		},
		Note: commandHelp("timers"),
	}.Run(ctx, f, args)
}

// timersCall is one command with its flags and arguments.
type timersCall struct {
	p           Process
	url         string
	json        bool
	kind, state string
	limit       int
}

func (t *timersCall) parse(f *Flags, command string, args []string, least, most int) ([]string, error) {
	f.StringVar(&t.url, "url", "http://"+app.DefaultAdminListen, "`URL` of the --admin-listen of any instance")
	f.BoolVar(&t.json, "json", false, "print JSON")
	if command == "list" {
		f.StringVar(&t.kind, "kind", "", "only timers of this `KIND`")
		f.StringVar(&t.state, "state", "", "only timers in this `STATE`: open or dead")
		f.IntVar(&t.limit, "limit", 100, "the largest number of timers to show")
	}
	rest, err := f.ParseWith(args, least, most)
	if err != nil {
		return nil, err
	}
	return rest, t.validate(command)
}

func (t *timersCall) validate(command string) error {
	var err error
	if t.url, err = ValidBase("timers", t.url); err != nil {
		return err
	}
	t.state = strings.ToUpper(t.state)
	switch {
	case t.state != "" && t.state != string(httpapi.TimerOpen) && t.state != string(httpapi.TimerDead):
		return UsageError{fmt.Errorf("timers: --state %q: want open or dead", t.state)}
	case command == "list" && (t.limit < 1 || t.limit > 1_000_000):
		return UsageError{fmt.Errorf("timers: --limit %d: want 1 to 1000000", t.limit)}
	}
	return nil
}

// ask asks the instance below the path of timers.
func (t *timersCall) ask(ctx context.Context, method, path string, v any) error {
	return client{t.p, "timers", t.url, "admin-listen"}.ask(ctx, method, "/api/v1/timers"+path, nil, v)
}

func (t *timersCall) list(ctx context.Context, _ []string) error {
	all := httpapi.TimerPage{Timers: []httpapi.Timer{}}
	for {
		query := url.Values{"limit": {fmt.Sprint(min(1000, t.limit-len(all.Timers)))}}
		for name, v := range map[string]string{"kind": t.kind, "state": t.state} {
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
		fmt.Fprintf(t.p.Stderr, "There are more than these %d; --limit shows them.\n", len(all.Timers))
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

func (t *timersCall) rebuild(ctx context.Context, args []string) error {
	return t.change(ctx, kindPath(args[0])+"/rebuild", "")
}

func (t *timersCall) pause(ctx context.Context, args []string) error {
	return t.change(ctx, kindPath(args[0])+"/pause", args[0]+" is paused: all instances follow within a second or so")
}

func (t *timersCall) resume(ctx context.Context, args []string) error {
	return t.change(ctx, kindPath(args[0])+"/resume", args[0]+" is not paused: all instances follow within a second or so")
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
	case words == "" && answer.Timers != nil && strings.HasSuffix(path, "/rebuild"):
		words = fmt.Sprintf("%d timers of the kind %s were not in the index and are now", *answer.Timers, answer.Kind)
	case words == "" && answer.Timers != nil:
		words = fmt.Sprintf("%d dead timers of the kind %s are due now", *answer.Timers, answer.Kind)
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
