package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"

	"example.com/shop/internal/httpapi"
)

// timersCommands are the commands below `shop timers`.
var timersCommands = []struct {
	name, args, what string
	least, most      int
	run              func(t *timersCall, ctx context.Context, args []string) error
}{
	{"list", "", "show stored timers, those that are tried soonest first", 0, 0, (*timersCall).list},
	{"get", "KIND ID", "show one timer", 2, 2, (*timersCall).get},
	{"fire", "KIND ID", "make a timer due now; its handler decides whether there is anything to do", 2, 2, (*timersCall).fire},
	{"redrive", "KIND [ID...]", "try dead timers again: the given ones, or all of the kind", 1, 1000, (*timersCall).redrive},
	{"rebuild", "KIND", "tell the index every open timer again", 1, 1, (*timersCall).rebuild},
	{"pause", "KIND", "stop the handling of a kind on all instances", 1, 1, (*timersCall).pause},
	{"resume", "KIND", "end a pause", 1, 1, (*timersCall).resume},
}

// timers runs the command below `shop timers` that args name.
func timers(ctx context.Context, p process, args []string) error {
	if len(args) == 0 {
		timersUsage(p.stderr)
		return usageError{errors.New("timers: which command?")}
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		timersUsage(p.stdout)
		return nil
	}
	for _, c := range timersCommands {
		if c.name != args[0] {
			continue
		}
		t := &timersCall{p: p}
		f := newFlags(p, strings.TrimSpace("timers "+c.name+" "+c.args), c.what)
		f.StringVar(&t.url, "url", "http://"+defaultAdmin, "`URL` of the --admin-listen of any instance")
		f.BoolVar(&t.json, "json", false, "print JSON")
		if c.name == "list" {
			f.StringVar(&t.kind, "kind", "", "only timers of this `KIND`")
			f.StringVar(&t.state, "state", "", "only timers in this `STATE`: open or dead")
			f.IntVar(&t.limit, "limit", 100, "the largest number of timers to show")
		}
		rest, err := f.parseWith(args[1:], c.least, c.most)
		if err == nil {
			err = t.validate(c.name)
		}
		if err == nil {
			err = c.run(t, ctx, rest)
		}
		return err
	}
	timersUsage(p.stderr)
	return usageError{fmt.Errorf("timers: no command %q", args[0])}
}

func timersUsage(w io.Writer) {
	fmt.Fprintln(w, "shop timers looks after the timers of a running instance, by its --admin-listen.")
	fmt.Fprintln(w)
	for _, c := range timersCommands {
		fmt.Fprintf(w, "  shop timers %-8s %-13s %s\n", c.name, c.args, c.what)
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, "shop timers COMMAND --help lists the flags. "+keyVariable+" has an admin's key, for instances that ask for one.")
}

// timersCall is one command and what it was told.
type timersCall struct {
	p           process
	url         string
	json        bool
	kind, state string
	limit       int
}

func (t *timersCall) validate(command string) error {
	var err error
	if t.url, err = validBase("timers", t.url); err != nil {
		return err
	}
	t.state = strings.ToUpper(t.state)
	switch {
	case t.state != "" && t.state != string(httpapi.TimerOpen) && t.state != string(httpapi.TimerDead):
		return usageError{fmt.Errorf("timers: --state %q: want open or dead", t.state)}
	case command == "list" && (t.limit < 1 || t.limit > 1_000_000):
		return usageError{fmt.Errorf("timers: --limit %d: want 1 to 1000000", t.limit)}
	}
	return nil
}

// ask asks the instance below the path of timers.
func (t *timersCall) ask(ctx context.Context, method, path string, v any) error {
	return instance{t.p, "timers", t.url, "admin-listen"}.ask(ctx, method, "/api/v1/timers"+path, nil, v)
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
			query.Set("after", *all.Next)
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
		fmt.Fprintf(t.p.stderr, "There are more than these %d; --limit shows them.\n", len(all.Timers))
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

// change posts to path and says what came of it, in the given words or in those of
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
	_, err := fmt.Fprintln(t.p.stdout, words)
	return err
}

func (t *timersCall) print(v any) error {
	e := json.NewEncoder(t.p.stdout)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// table prints timers, with at most longest characters of what failed.
func (t *timersCall) table(timers []httpapi.Timer, longest int) error {
	const moment = "2006-01-02T15:04:05.000Z07:00"
	w := tabwriter.NewWriter(t.p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KIND\tID\tSTATE\tDUE\tNEXT\tATTEMPT\tLANE\tLAST ERROR")
	for _, r := range timers {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", r.Kind, r.ID, r.State,
			r.Due.UTC().Format(moment), r.Next.UTC().Format(moment), r.Attempt, r.Lane, oneLine(r.LastError, longest))
	}
	return w.Flush()
}

// oneLine keeps a text from breaking the table, or the terminal.
func oneLine(s string, longest int) string {
	runes := []rune(strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, s))
	if len(runes) > longest {
		return string(runes[:longest]) + "..."
	}
	return string(runes)
}
