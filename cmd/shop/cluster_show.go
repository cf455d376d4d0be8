package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"example.com/shop/internal/httpapi"
)

// watchEvery is how often shop config watch looks.
const watchEvery = 250 * time.Millisecond

// clusterCall is a command that asks an instance about the cluster.
type clusterCall struct {
	p       process
	command string
	url     string
	json    bool
	version int64
	given   bool // the version
}

// parse reads the command line of a command below `shop cluster` or `shop config`, and returns its arguments.
func (c *clusterCall) parse(args, what string, line []string, least, most int) ([]string, error) {
	f := newFlags(c.p, strings.TrimSpace(c.command+" "+args), what)
	f.StringVar(&c.url, "url", "http://"+defaultListen, "`URL` of any instance")
	f.BoolVar(&c.json, "json", false, "print JSON")
	if c.command == "config set" {
		f.Int64Var(&c.version, "version", 0, "the version to be replaced, as shop config get shows it; 0: none was written yet (default any)")
	}
	rest, err := f.parseWith(line, least, most)
	if err != nil {
		return nil, err
	}
	c.given = given(f)["version"]
	c.url, err = validBase(c.command, c.url)
	return rest, err
}

func (c *clusterCall) state(ctx context.Context) (s httpapi.ClusterState, err error) {
	err = c.instance().ask(ctx, http.MethodGet, "/api/v1/cluster", nil, &s)
	return s, err
}

func (c *clusterCall) instance() instance { return instance{c.p, c.command, c.url, "listen"} }

func (c *clusterCall) print(v any) error {
	e := json.NewEncoder(c.p.stdout)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// below returns the command of a group that args name.
func below(p process, group, usage string, args []string, run map[string]func(context.Context, *clusterCall, []string) error) (*clusterCall, func(context.Context, *clusterCall, []string) error, error) {
	if len(args) == 0 {
		fmt.Fprintln(p.stderr, usage)
		return nil, nil, usageError{fmt.Errorf("%s: which command?", group)}
	}
	if args[0] == "help" || strings.TrimLeft(args[0], "-") == "help" || args[0] == "-h" {
		fmt.Fprintln(p.stdout, usage)
		return nil, nil, errHelp
	}
	f, ok := run[args[0]]
	if !ok {
		fmt.Fprintln(p.stderr, usage)
		return nil, nil, usageError{fmt.Errorf("%s: no command %q", group, args[0])}
	}
	return &clusterCall{p: p, command: group + " " + args[0]}, f, nil
}

const clusterUsage = `shop cluster shows the instances, as any of them knows them.

  shop cluster members  which instances live, and which of them leads
  shop cluster leader   who leads, and in which term; exit 1 if nobody does

shop cluster COMMAND --help lists the flags. ` + keyVariable + ` has an admin's key, for instances that ask for one.`

// clusters runs the command below `shop cluster` that args name.
func clusters(ctx context.Context, p process, args []string) error {
	c, run, err := below(p, "cluster", clusterUsage, args, map[string]func(context.Context, *clusterCall, []string) error{
		"members": members, "leader": leader,
	})
	if err != nil {
		return err
	}
	return run(ctx, c, args[1:])
}

func members(ctx context.Context, c *clusterCall, args []string) error {
	if _, err := c.parse("", "show which instances live, and which of them leads", args, 0, 0); err != nil {
		return err
	}
	s, err := c.state(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return c.print(s)
	}
	t := tabwriter.NewWriter(c.p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tADDRESS\tROLE\tVERSION\tSTARTED\tLEADS")
	for _, m := range s.Members {
		leads := ""
		if m.Leads {
			leads = fmt.Sprint("term ", s.Leader.Term)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", m.Name, m.Address, m.Role, m.Version, m.StartedAt.Format(time.RFC3339), leads)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	c.warn(s)
	return nil
}

// warn says that what was shown may be old.
func (c *clusterCall) warn(s httpapi.ClusterState) {
	if s.Stale != "" {
		fmt.Fprintln(c.p.stderr, "This may be old:", s.Stale)
	}
}

func leader(ctx context.Context, c *clusterCall, args []string) error {
	if _, err := c.parse("", "show who leads, and in which term; exit 1 if nobody does", args, 0, 0); err != nil {
		return err
	}
	s, err := c.state(ctx)
	if err != nil {
		return err
	}
	c.warn(s)
	if s.Leader == nil {
		return errors.New("cluster leader: nobody leads")
	}
	if c.json {
		return c.print(s.Leader)
	}
	_, err = fmt.Fprintf(c.p.stdout, "%s, term %d, since %s\n", s.Leader.Name, s.Leader.Term, s.Leader.Since.Format(time.RFC3339))
	return err
}

const configUsage = `shop config looks after the settings that can be changed while instances run.

  shop config get [NAME]      show all settings, or the value of one
  shop config set NAME VALUE  change a setting on all instances
  shop config watch           show all settings, and again whenever one changes, until Ctrl-C

shop config COMMAND --help lists the flags. ` + keyVariable + ` has an admin's key, for instances that ask for one.`

// config runs the command below `shop config` that args name.
func config(ctx context.Context, p process, args []string) error {
	c, run, err := below(p, "config", configUsage, args, map[string]func(context.Context, *clusterCall, []string) error{
		"get": getConfig, "set": setConfig, "watch": watchConfig,
	})
	if err != nil {
		return err
	}
	return run(ctx, c, args[1:])
}

func getConfig(ctx context.Context, c *clusterCall, args []string) error {
	rest, err := c.parse("[NAME]", "show all settings, or the value of one", args, 0, 1)
	if err != nil {
		return err
	}
	s, err := c.state(ctx)
	if err != nil {
		return err
	}
	if len(rest) == 0 {
		return c.settings(s.Config)
	}
	for _, each := range s.Config {
		if each.Name != rest[0] {
			continue
		}
		if c.json {
			return c.print(each)
		}
		_, err := fmt.Fprintln(c.p.stdout, each.Value)
		return err
	}
	var names []string
	for _, each := range s.Config {
		names = append(names, each.Name)
	}
	return fmt.Errorf("config get: no setting %q; there are %s", rest[0], strings.Join(names, ", "))
}

func (c *clusterCall) settings(all []httpapi.Setting) error {
	if c.json {
		return c.print(all)
	}
	t := tabwriter.NewWriter(c.p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tVALUE\tVERSION")
	for _, s := range all {
		fmt.Fprintf(t, "%s\t%s\t%d\n", s.Name, s.Value, s.Version)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, s := range all {
		if s.Refused != "" {
			fmt.Fprintf(c.p.stderr, "%s: what is stored is refused: %s\n", s.Name, s.Refused)
		}
	}
	return nil
}

func setConfig(ctx context.Context, c *clusterCall, args []string) error {
	rest, err := c.parse("NAME VALUE", "change a setting on all instances", args, 2, 2)
	if err != nil {
		return err
	}
	wanted := httpapi.NewSetting{Value: rest[1]}
	if c.given {
		wanted.Version = &c.version
	}
	var written httpapi.Setting
	if err := c.instance().ask(ctx, http.MethodPut, "/api/v1/cluster/config/"+url.PathEscape(rest[0]), wanted, &written); err != nil {
		return err
	}
	return c.settings([]httpapi.Setting{written})
}

func watchConfig(ctx context.Context, c *clusterCall, args []string) error {
	if _, err := c.parse("", "show all settings, and again whenever one changes, until Ctrl-C", args, 0, 0); err != nil {
		return err
	}
	shown, failing := "", false
	for {
		s, err := c.state(ctx)
		now := fmt.Sprint(s.Config)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // Ctrl-C is how it ends.
		case err != nil && shown == "":
			return err
		case err != nil && !failing:
			fmt.Fprintf(c.p.stderr, "%v; asking again\n", err)
		case err == nil && now != shown:
			shown = now
			if err := c.settings(s.Config); err != nil {
				return err
			}
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchEvery):
		}
	}
}
