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

func fairnessLab() Lab {
	return Lab{
		Number: 12, Name: "fairness", Title: "Fair or not: the queue, the herd, and starvation",
		Question: "Several processes want one lock again and again. Who gets it next, and how many requests does that cost?",
		Expect: "With polling, a process that releases the lock often gets it again, and others starve. If a release notifies all waiters, all of them ask at once " +
			"and one succeeds. With a queue, each release is a hand-off to the next process, for two requests.",
		Why: "A waiter that polls has the lock only if it asks between a release and the next acquisition. The process that has just released is there first. " +
			"A broadcast shortens the wait, and makes each release cost a request for each waiter.",
		Cure: "The lock keeps a queue of waiters. The script that releases the lock grants it to the first waiter, and notifies that process alone.",
		Links: []Link{
			{"queue and notification", "internal/dlock/redislock/doc.go"},
			{"the script that finds the next waiter", "internal/dlock/redislock/lua/queue.lua"},
			{"polling with jitter, for comparison", "internal/dlock/redislock/config.go"},
			{"the test of fairness", "internal/dlock/redislock/fairness_test.go"},
		},
		Exercises: [3]string{
			"A process in the queue is paused with SIGSTOP. How long does its turn hold up the others, and which setting bounds that?",
			"Let a process that polls pause for 5 ms after each release. Who starves now, and what is the price in throughput?",
			"Let each process have eight callers, and decorate its lock with dlock/share. How many requests does a grant cost now, and who waits longer?",
		},
		Needs:  []string{"redis-server"},
		Script: runFairness, worker: fairnessWorker,
	}
}

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
	picture := r.Draw(&Picture{Title: fmt.Sprintf("grants of each process, of %d", grants), Unit: "grants"})
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
