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

// clusterRun does the work of one of these commands.
type clusterRun func(c *clusterCall, ctx context.Context, args []string) error

// define returns the definition of the flags of a command.
func (run clusterRun) define(f *Flags) (*clusterCall, Run) {
	c := &clusterCall{p: f.Process, command: f.Command()}
	f.URLVar(&c.url, "url", "http://"+app.DefaultListen, "`URL`: ask the instance at this base URL; any instance responds for all")
	f.BoolVar(&c.json, "json", false, "print JSON")
	return c, func(ctx context.Context, args []string) error {
		c.given = f.Given("version")
		return run(c, ctx, args)
	}
}

// plain defines no further flags.
func (run clusterRun) plain(f *Flags) Run {
	_, do := run.define(f)
	return do
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

// clusterCommand shows the instances, as any of them knows them.
func clusterCommand() Command {
	return Command{
		Name: "cluster", Summary: "Show the instances and their leader",
		Commands: []Command{
			{
				Name: "members", Summary: "Show which instances are alive, and which of them leads", Env: adminKey,
				Examples: []Example{
					{"As a table", "shop cluster members"},
					{"As JSON, from another instance", "shop cluster members --json --url http://127.0.0.1:8090"},
				},
				Define: clusterRun((*clusterCall).members).plain,
			},
			{
				Name: "leader", Summary: "Show the leader and its leadership term", Env: adminKey,
				Examples: []Example{
					{"Name, term and start", "shop cluster leader"},
					{"As JSON", "shop cluster leader --json"},
				},
				Exits:  []Exit{{0, "an instance leads"}, {1, "no instance leads, or the instance at --url does not respond"}},
				Define: clusterRun((*clusterCall).leader).plain,
			},
		},
	}
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
		fmt.Fprintln(c.p.Stderr, "The list may be out of date:", s.Stale)
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
