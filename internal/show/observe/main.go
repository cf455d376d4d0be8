// Command observe runs a slow steady sale on three instances, with faults, and shows its metrics and logs. `make observe` starts it.
//
// VictoriaMetrics scrapes the instances each second and has the dashboards of deployments/observe. The instances send their logs to
// VictoriaLogs over OTLP. Ctrl-C stops everything and leaves nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/show/fleet"
)

// pause is the time between two faults.
const pause = 30 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if err := run(ctx, pause, os.Stdout); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "observe:", err)
		stop()
		os.Exit(1)
	}
	stop()
}

// run returns when ctx ends, and everything it started has ended then. It is called in the folder of the project.
func run(ctx context.Context, pause time.Duration, out io.Writer) (err error) {
	executable, err := exec.LookPath("shop")
	if err != nil {
		return err
	}
	logs, err := startLogs(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, logs.Close()) }()
	s, err := open(ctx, executable, fleet.StoresConfig{All: true}, "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT="+logs.URL()+"/insert/opentelemetry/v1/logs")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	metrics, err := s.startMetrics(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, metrics.Close()) }()

	ctx, cancel := context.WithCancelCause(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel(nil)
	tasks.Go(func() {
		if err := s.sell(ctx); err != nil {
			cancel(err)
		}
	})
	fmt.Fprintf(out, "Dashboards: %s/vmui/#/dashboards\nLogs: %s/select/vmui\n", metrics.URL(), logs.URL())
	fmt.Fprintf(out, "Orders: %s\nCtrl-C stops everything.\n", strings.Join(s.urls(), " "))
	for {
		for _, f := range s.faults() {
			if !backoff.Sleep(ctx, pause) {
				return context.Cause(ctx)
			}
			fmt.Fprintf(out, "%s %s\n", time.Now().Format(time.TimeOnly), f.name)
			if err := f.happen(ctx); err != nil {
				return err
			}
		}
	}
}

// startMetrics starts a VictoriaMetrics that scrapes the instances.
func (s *shop) startMetrics(ctx context.Context) (*testbed.HTTP, error) {
	dashboards, err := filepath.Abs("deployments/observe/vmui")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(s.stores.Dir, "scrape.yml")
	if err := os.WriteFile(config, []byte(s.scrapeConfig()), 0o600); err != nil {
		return nil, err
	}
	return testbed.StartHTTP(ctx, testbed.HTTPConfig{
		Program: "victoria-metrics", Ready: "/health",
		Args: func(address, folder string) []string {
			return []string{
				"-httpListenAddr=" + address, "-storageDataPath=" + filepath.Join(folder, "data"), "-promscrape.config=" + config,
				"-vmui.customDashboardsPath=" + dashboards, "-search.latencyOffset=1s", "-loggerLevel=WARN",
			}
		},
	})
}

// scrapeConfig returns the file for Prometheus and for VictoriaMetrics.
func (s *shop) scrapeConfig() string {
	var b strings.Builder
	b.WriteString("global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n  - job_name: shop\n    static_configs:\n")
	for i, address := range s.metrics {
		fmt.Fprintf(&b, "      - {targets: [%q], labels: {instance: shop-%d}}\n", address, i+1)
	}
	return b.String()
}

func startLogs(ctx context.Context) (*testbed.HTTP, error) {
	return testbed.StartHTTP(ctx, testbed.HTTPConfig{
		Program: "victoria-logs", Ready: "/health",
		Args: func(address, folder string) []string {
			return []string{"-httpListenAddr=" + address, "-storageDataPath=" + filepath.Join(folder, "data"), "-loggerLevel=WARN"}
		},
	})
}
