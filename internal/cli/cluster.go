package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"text/tabwriter"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/httpapi"
)

// clusterCall is a command that asks an instance about the cluster.
type clusterCall struct {
	p       Process
	command string
	url     string
	json    bool
	version int64
	given   bool // the version
}

// subcommand returns a command that takes between least and most arguments.
func (c *clusterCall) subcommand(group, name, args, what string, least, most int, run func(context.Context, []string) error) Command {
	return Command{Name: name, Args: args, What: what, Run: func(ctx context.Context, f *Flags, args []string) error {
		c.p, c.command = f.Process, group+" "+name
		f.StringVar(&c.url, "url", "http://"+app.DefaultListen, "`URL` of any instance")
		f.BoolVar(&c.json, "json", false, "print JSON")
		if c.command == "config set" {
			f.Int64Var(&c.version, "version", 0, "the version to be replaced, as shop config get shows it; 0: none was written yet (default any)")
		}
		rest, err := f.ParseWith(args, least, most)
		if err != nil {
			return err
		}
		c.given = f.Given()["version"]
		if c.url, err = ValidBase(c.command, c.url); err != nil {
			return err
		}
		return run(ctx, rest)
	}}
}

func (c *clusterCall) state(ctx context.Context) (s httpapi.ClusterState, err error) {
	err = c.client().ask(ctx, http.MethodGet, "/api/v1/cluster", nil, &s)
	return s, err
}

func (c *clusterCall) client() client { return client{c.p, c.command, c.url, "listen"} }

func (c *clusterCall) print(v any) error {
	e := json.NewEncoder(c.p.Stdout)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Cluster shows the instances, as any of them knows them.
func Cluster(ctx context.Context, f *Flags, args []string) error {
	c := &clusterCall{}
	return Group{
		What: "shop cluster shows the instances, as any of them knows them.",
		Commands: []Command{
			c.subcommand("cluster", "members", "", "show which instances live, and which of them leads", 0, 0, c.members),
			c.subcommand("cluster", "leader", "", "show the leader and its term; exit 1 without a leader", 0, 0, c.leader),
		},
		Note: commandHelp("cluster"),
	}.Run(ctx, f, args)
}

func (c *clusterCall) members(ctx context.Context, _ []string) error {
	s, err := c.state(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return c.print(s)
	}
	t := tabwriter.NewWriter(c.p.Stdout, 0, 0, 2, ' ', 0)
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
		fmt.Fprintln(c.p.Stderr, "This may be old:", s.Stale)
	}
}

func (c *clusterCall) leader(ctx context.Context, _ []string) error {
	s, err := c.state(ctx)
	if err != nil {
		return err
	}
	c.warn(s)
	if s.Leader == nil {
		return errors.New("cluster leader: there is no leader")
	}
	if c.json {
		return c.print(s.Leader)
	}
	_, err = fmt.Fprintf(c.p.Stdout, "%s, term %d, since %s\n", s.Leader.Name, s.Leader.Term, s.Leader.Since.Format(time.RFC3339))
	return err
}
