package throughput

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	customers "example.com/shop/internal/show/buyers"
	"example.com/shop/internal/show/fleet"
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

// choose returns the strategies to sell by: those that were asked for, or all whose stores
// there are.
func (l *lab) choose(ctx context.Context, shop *customers.Shop) ([]string, error) {
	offered, _, err := shop.Strategies(ctx)
	if err != nil || len(l.Strategies) == 0 {
		return offered, err
	}
	for _, s := range l.Strategies {
		if !slices.Contains(offered, s) {
			return nil, fmt.Errorf("--strategies: %s needs a store that is not among --stores %s", s, strings.Join(l.Stores, ","))
		}
	}
	return l.Strategies, nil
}
