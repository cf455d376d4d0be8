package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"example.com/shop/internal/httpapi"
)

// watchEvery is the poll interval of shop config watch.
const watchEvery = 250 * time.Millisecond

// Config manages the settings that can change while instances run.
func Config(ctx context.Context, f *Flags, args []string) error {
	c := &clusterCall{}
	return Group{
		What: "shop config manages the settings that can change while instances run.",
		Commands: []Command{
			c.subcommand("config", "get", "[NAME]", "show all settings, or the value of one", 0, 1, c.getSetting),
			c.subcommand("config", "set", "NAME VALUE", "change a setting on all instances", 2, 2, c.setSetting),
			c.subcommand("config", "watch", "", "show all settings, and again whenever one changes, until Ctrl-C", 0, 0, c.watchSettings),
		},
		Note: commandHelp("config"),
	}.Run(ctx, f, args)
}

func (c *clusterCall) getSetting(ctx context.Context, rest []string) error {
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
		_, err := fmt.Fprintln(c.p.Stdout, each.Value)
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
	t := tabwriter.NewWriter(c.p.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tVALUE\tVERSION")
	for _, s := range all {
		fmt.Fprintf(t, "%s\t%s\t%d\n", s.Name, s.Value, s.Version)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, s := range all {
		if s.Refused != "" {
			fmt.Fprintf(c.p.Stderr, "%s: what is stored is refused: %s\n", s.Name, s.Refused)
		}
	}
	return nil
}

func (c *clusterCall) setSetting(ctx context.Context, rest []string) error {
	wanted := httpapi.NewSetting{Value: rest[1]}
	if c.given {
		wanted.Version = &c.version
	}
	var written httpapi.Setting
	if err := c.client().ask(ctx, http.MethodPut, "/api/v1/cluster/config/"+url.PathEscape(rest[0]), wanted, &written); err != nil {
		return err
	}
	return c.settings([]httpapi.Setting{written})
}

func (c *clusterCall) watchSettings(ctx context.Context, _ []string) error {
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
			fmt.Fprintf(c.p.Stderr, "%v; asking again\n", err)
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
