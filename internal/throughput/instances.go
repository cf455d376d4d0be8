package throughput

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"example.com/shop/internal/fleet"
)

// start starts instances of a program.
func (l *lab) start(ctx context.Context, executable string, more []string, pids map[string][]int) ([]string, error) {
	args := slices.Concat(l.stores.args, []string{"--order-ttl", orderTTL, "--permits", strconv.Itoa(4 * l.Connections)}, more, l.Args)
	f, err := fleet.Start(ctx, fleet.Config{
		Executable: executable, Dir: l.stores.dir, First: 1 + l.Instances*len(l.fleets), N: l.Instances, Args: args,
	})
	if err != nil {
		return nil, err
	}
	l.fleets = append(l.fleets, f)
	for _, in := range f.Instances() {
		pids["shop"] = append(pids["shop"], in.PID())
	}
	return f.URLs(), nil
}

// ask makes one request of an instance that is no order.
func (l *lab) ask(ctx context.Context, method, url string, body, answer any) error {
	var b bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&b).Encode(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, url, &b)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := l.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: status %d: %s", method, url, resp.StatusCode, bytes.TrimSpace(text))
	}
	if err == nil && answer != nil {
		err = json.Unmarshal(text, answer)
	}
	return err
}

// choose returns the strategies to sell by: those that were asked for, or all whose stores
// there are.
func (l *lab) choose(ctx context.Context, url string) ([]string, error) {
	var list struct {
		Strategies []struct {
			Name      string
			Available bool
		}
	}
	if err := l.ask(ctx, http.MethodGet, url+"/api/v1/strategies", nil, &list); err != nil {
		return nil, err
	}
	var offered []string
	for _, s := range list.Strategies {
		if s.Available {
			offered = append(offered, s.Name)
		}
	}
	for _, s := range l.Strategies {
		if !slices.Contains(offered, s) {
			return nil, fmt.Errorf("--strategies: %s needs a store that is not among --stores %s", s, strings.Join(l.Stores, ","))
		}
	}
	if len(l.Strategies) > 0 {
		return l.Strategies, nil
	}
	return offered, nil
}
