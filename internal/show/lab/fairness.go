package lab

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/testbed"
)

// scramble is a run of several processes that want one lock.
type scramble struct {
	mode     string // queue, poll, or herd
	shares   []int  // grants of each process
	overtook int    // the most grants of others while one process waited
	requests float64
}

// fairnessSettings say how to run the processes, and how to report them.
var fairnessSettings = map[string]string{
	"queue": "with a queue",
	"poll":  "with polling",
	"herd":  "with a broadcast",
}

func runFairness(ctx context.Context, r *Run) {
	server := must(testbed.StartRedis(ctx, testbed.RedisConfig{}))
	r.Defer(server.Close)
	rdb := r.client(server.URL())
	n, grants := r.Size(4, 8), r.Size(200, 600)
	r.Step("%d processes want one lock again and again, on a Redis server of their own, until it was granted %d times", n, grants)
	picture := r.Draw(&Picture{Title: fmt.Sprintf("grants of each process, of %d", grants), Unit: "grants", Legend: Legend{Holds: "about its share", Stale: "less than half of its share, or more than twice"}})
	found := map[string]*scramble{}
	for _, mode := range []string{"queue", "poll", "herd"} {
		s := &scramble{mode: mode}
		s.run(ctx, r, rdb, server.URL(), n, grants)
		found[mode] = s
		least, most := slices.Min(s.shares), slices.Max(s.shares)
		r.Step("%s: between %d and %d grants each. One process waited while others had %d grants. %.1f requests for each grant",
			fairnessSettings[mode], least, most, s.overtook, s.requests)
		r.Measure("requests for each grant "+fairnessSettings[mode], s.requests, "requests")
		r.Measure("longest wait "+fairnessSettings[mode], float64(s.overtook), "grants of others")
		for i, share := range slices.Backward(slices.Sorted(slices.Values(s.shares))) {
			kind := Holds
			if share < grants/n/2 || share > 2*grants/n {
				kind = Stale
			}
			picture.Bars = append(picture.Bars, Bar{fmt.Sprintf("%s, process %d", mode, n-i), float64(share), kind})
		}
	}
	queue, poll, herd := found["queue"], found["poll"], found["herd"]
	r.Effect(poll.overtook > 2*n && poll.overtook > 2*queue.overtook, "with polling, a process waited while others had %d grants", poll.overtook)
	r.Effect(herd.requests > 1.5*queue.requests, "with a broadcast, each grant took %.1f requests", herd.requests)
	r.Cure(2*slices.Min(queue.shares) > slices.Max(queue.shares), "with a queue, processes had between %d and %d grants", slices.Min(queue.shares), slices.Max(queue.shares))
	r.Cure(queue.requests < 3, "with a queue, each grant took %.1f requests", queue.requests)
}

// run starts the processes, and lets all of them begin when all are ready.
func (s *scramble) run(ctx context.Context, r *Run, rdb redis.UniversalClient, url string, n, grants int) {
	var processes []*Process
	for i := range n {
		processes = append(processes, r.Start(ctx, fmt.Sprintf("%s, process %d", s.mode, i+1), map[string]string{
			"name": fmt.Sprint(i), "redis": url, "mode": s.mode, "grants": fmt.Sprint(grants),
		}))
	}
	for _, p := range processes {
		p.Until(ctx, pointReady)
	}
	before := scripts(ctx, rdb)
	for _, p := range processes {
		p.Continue()
	}
	for _, p := range processes {
		done := p.Until(ctx, pointDone)
		var share, overtook int
		must(fmt.Sscan(done.Value, &share, &overtook))
		s.shares, s.overtook = append(s.shares, share), max(s.overtook, overtook)
	}
	s.requests = float64(scripts(ctx, rdb)-before) / float64(grants)
}

var calls = regexp.MustCompile(`(?m)^cmdstat_eval(?:sha)?:calls=(\d+)`)

// scripts returns how many scripts the server has executed. All locks of the lab are scripts, so this is their number of requests.
func scripts(ctx context.Context, rdb redis.UniversalClient) (n int64) {
	info := must(rdb.Info(ctx, "commandstats").Result())
	for _, match := range calls.FindAllStringSubmatch(strings.ReplaceAll(info, "\r", ""), -1) {
		one, _ := strconv.ParseInt(match[1], 10, 64)
		n += one
	}
	return n
}
