package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"text/tabwriter"
	"time"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/platform/backoff"
)

// watchEvery is the poll interval of shop config watch.
const watchEvery = 250 * time.Millisecond

// configCommand manages the settings that can change while instances run.
func configCommand() Command {
	return Command{
		Name: "config", Summary: "Show and change the settings that can change while instances run",
		Details: "Instances with --zookeeper share their settings. Without it, each instance keeps the values of its flags, and refuses a change.",
		Commands: []Command{
			{
				Name: "get", Args: "[NAME]", Summary: "Show all settings, or the value of one", Env: adminKey,
				Examples: []Example{
					{"All settings with their versions", "shop config get"},
					{"One value, for a script", "shop config get permits"},
				},
				Define: clusterRun((*clusterCall).getSetting).plain,
			},
			{
				Name: "set", Args: "NAME VALUE", Summary: "Change a setting on all instances", Env: adminKey,
				Examples: []Example{
					{"At most 8 orders in flight, over all instances", "shop config set permits 8"},
					{"Only if nobody has changed the setting since version 3", "shop config set order-ttl 10m --version 3"},
				},
				Define: func(f *Flags) Run {
					c, do := clusterRun((*clusterCall).setSetting).define(f)
					f.Int64Var(&c.version, "version", 0, "`VERSION`: replace only this version, as shop config get shows it; 0 means never written")
					f.DefaultText("version", "any version")
					return do
				},
			},
			{
				Name: "watch", Summary: "Show all settings, and again after each change, until Ctrl-C", Env: adminKey,
				Examples: []Example{
					{"As a table", "shop config watch"},
					{"As JSON, one line per change", "shop config watch --json"},
				},
				Define: clusterRun((*clusterCall).watchSettings).plain,
			},
		},
	}
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
	return fmt.Errorf("config get: no setting %q: %w", rest[0], OneOf(rest[0], names))
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
			fmt.Fprintf(c.p.Stderr, "%s: the stored value is refused: %s\n", s.Name, s.Refused)
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
			fmt.Fprintf(c.p.Stderr, "%v; retrying\n", err)
		case err == nil && now != shown:
			shown = now
			if err := c.settings(s.Config); err != nil {
				return err
			}
		}
		failing = err != nil
		if !backoff.Sleep(ctx, watchEvery) {
			return nil
		}
	}
}
