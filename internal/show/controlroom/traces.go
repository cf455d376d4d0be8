package controlroom

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"
)

// traceEnv has instances record every span in memory, unless the user exports traces or has switched them off.
func traceEnv() []string {
	for _, name := range []string{"OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"} {
		if os.Getenv(name) != "" {
			return nil
		}
	}
	return []string{"OTEL_TRACES_EXPORTER=memory", "OTEL_TRACES_SAMPLER=always_on"}
}

// orderTrace is what instances have recorded of an order, as the API has it.
type orderTrace struct {
	Since *time.Time        `json:"since,omitempty"`
	Spans []json.RawMessage `json:"spans"`
}

// traceWithin is how long an instance may take to return its spans.
const traceWithin = 2 * time.Second

// trace responds with the spans of an order at all instances that serve: one has placed it, and others may have changed it.
func (r *Room) trace(w http.ResponseWriter, req *http.Request) {
	ctx, cancel := context.WithTimeout(req.Context(), traceWithin)
	defer cancel()
	urls := r.urls()
	r.mu.Lock()
	if r.unpaid != nil {
		urls = append(urls, r.unpaid.URLs()...)
	}
	r.mu.Unlock()
	all, parts := orderTrace{Spans: []json.RawMessage{}}, make([]orderTrace, len(urls))
	var asked sync.WaitGroup
	for i, base := range urls {
		asked.Go(func() { // one that is paused does not respond
			get(ctx, http.DefaultClient, base+"/api/v1/orders/"+url.PathEscape(req.PathValue("id"))+"/trace", &parts[i])
		})
	}
	asked.Wait()
	for _, p := range parts {
		all.Spans = append(all.Spans, p.Spans...)
		if all.Since == nil || p.Since != nil && p.Since.Before(*all.Since) {
			all.Since = p.Since
		}
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(all) //nolint:errcheck,errchkjson // the client has gone
}
