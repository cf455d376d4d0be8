package controlroom

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"example.com/shop/internal/httpapi/page"
	"example.com/shop/internal/platform/backoff"
)

// tokenHeader has the token of the page's address, which no page of another origin can send.
const tokenHeader = "Shop-Room-Token"

// handler serves the page, the operations of the room, and the API of a running instance. Work that it starts continues
// until ctx ends.
func (r *Room) handler(ctx context.Context) (http.Handler, error) {
	files, err := page.Files()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for path, file := range files {
		if path == "/" {
			path = "/{$}"
		}
		mux.Handle("GET "+path, file)
	}
	mux.Handle("GET /lab/state", r.owner(http.HandlerFunc(r.streamState)))
	mux.Handle("POST /lab/actions/{action}", r.owner(r.command(func(req *http.Request) error {
		return r.do(ctx, req.PathValue("action"), req.FormValue("instance"))
	})))
	mux.Handle("POST /lab/sale", r.owner(r.command(func(req *http.Request) error {
		var o Order
		decoder := json.NewDecoder(http.MaxBytesReader(nil, req.Body, 1<<16))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&o); err != nil {
			return fmt.Errorf("the sale cannot be read: %w", err)
		}
		return r.sell(ctx, o)
	})))
	mux.Handle("POST /lab/late", r.owner(r.command(func(*http.Request) error { return r.late(ctx) })))
	mux.Handle("POST /lab/unpaid", r.owner(r.command(func(*http.Request) error { return r.placeUnpaid(ctx) })))
	mux.Handle("GET /lab/orders/{id}/trace", r.owner(http.HandlerFunc(r.trace)))
	mux.Handle("GET /lab/labs", r.owner(http.HandlerFunc(listLabs)))
	mux.Handle("POST /lab/labs/{name}", r.owner(r.command(func(req *http.Request) error { return r.runLab(ctx, req.PathValue("name")) })))
	mux.Handle("POST /lab/sale/stop", r.owner(r.command(func(*http.Request) error {
		r.mu.Lock()
		s := r.sale
		ended := s == nil || !s.Running
		r.mu.Unlock()
		if ended {
			return conflict{errors.New("no sale is under way")}
		}
		s.stop()
		return nil
	})))
	api := r.instanceThatRuns()
	mux.Handle("/api/", api)
	mux.Handle("GET /docs", api)
	mux.Handle("GET /docs/", api)
	mux.Handle("GET /openapi.yaml", api)
	return r.own(mux), nil
}

// own refuses requests for another address, as a name that somebody has pointed here would make, and what pages
// of other origins send.
func (r *Room) own(next http.Handler) http.Handler {
	_, port, _ := net.SplitHostPort(r.address)
	hosts := map[string]bool{r.address: true, "localhost:" + port: true}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		origin := req.Header.Get("Origin")
		if !hosts[req.Host] || origin != "" && origin != "http://"+req.Host {
			refuse(w, http.StatusForbidden, "this control room answers its own page only, at http://"+r.address)
			return
		}
		next.ServeHTTP(w, req)
	})
}

// owner lets those pass who have the address that the room printed.
func (r *Room) owner(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if subtle.ConstantTimeCompare([]byte(req.Header.Get(tokenHeader)), []byte(r.token)) != 1 {
			refuse(w, http.StatusUnauthorized, "open the address that shop lab printed, with its token")
			return
		}
		next.ServeHTTP(w, req)
	})
}

// answerWithin is how long a command may take until its response says that it is under way: less than the page waits. Its outcome is in
// the state of the room.
const answerWithin = 3 * time.Second

// command answers with nothing, or with what is wrong.
func (r *Room) command(do func(*http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		done := make(chan error, 1)
		r.tasks.Go(func() { done <- do(req) })
		var err error
		select {
		case err = <-done:
		case <-time.After(answerWithin):
			w.WriteHeader(http.StatusAccepted)
			r.tasks.Go(func() {
				if err := <-done; err != nil {
					fmt.Fprintf(r.Out, "%s: %v\n", req.URL.Path, err)
				}
			})
			return
		}
		var wrongState conflict
		var failed unavailable
		switch {
		case err == nil:
			w.WriteHeader(http.StatusNoContent)
		case errors.Is(err, errUnknown):
			refuse(w, http.StatusNotFound, err.Error())
		case errors.As(err, &wrongState):
			refuse(w, http.StatusConflict, err.Error())
		case errors.As(err, &failed):
			refuse(w, http.StatusServiceUnavailable, err.Error())
		default:
			refuse(w, http.StatusBadRequest, err.Error())
		}
	})
}

func refuse(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": detail}) //nolint:errcheck,errchkjson // the client has gone
}

// instanceThatRuns passes requests on to the first instance that runs. When that one is paused or ends, they are cut off: a
// page resumes its stream at another one.
func (r *Room) instanceThatRuns() http.Handler {
	type key struct{}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(p.In.Context().Value(key{}).(*url.URL)) //nolint:forcetypeassert,errcheck // set below
			p.Out.Header.Del("Origin")
			p.Out.Header.Del(tokenHeader)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			refuse(w, http.StatusBadGateway, "the instance has not answered: "+err.Error())
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		target, serving := r.target()
		if target == nil {
			refuse(w, http.StatusServiceUnavailable, "no instance runs")
			return
		}
		ctx, cancel := context.WithCancel(context.WithValue(req.Context(), key{}, target))
		defer cancel()
		defer context.AfterFunc(serving, cancel)()
		proxy.ServeHTTP(w, req.WithContext(ctx))
	})
}

// target returns the base URL of the first instance that runs, and for how long it does; nil if none does.
func (r *Room) target() (*url.URL, context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.members {
		if u, err := url.Parse(m.url); m.state == running && err == nil {
			return u, m.serving
		}
	}
	return nil, nil
}

// state is what the page shows of the room.
type state struct {
	Instances []instanceState `json:"instances"`
	Redis     storeState      `json:"redis"`
	Database  storeState      `json:"database"`
	Sale      *sale           `json:"sale,omitempty"`
	Lab       *labRun         `json:"lab,omitempty"`
}

type instanceState struct {
	Name    string  `json:"name"`
	PID     int     `json:"pid"`
	State   string  `json:"state"`
	Ready   bool    `json:"ready"`
	Memory  int64   `json:"memory_bytes"`
	Latency float64 `json:"latency_ms"`
	CutOff  bool    `json:"cut_off"`

	load
}

type storeState struct {
	Kind  string `json:"kind"`
	State health `json:"state"`
	Line  bool   `json:"line"` // faults of the line can be made
	Own   bool   `json:"own"`  // it is of this run, so it may be emptied

	measured
}

// now returns the state as JSON, its version, and a channel that is closed at the next change.
func (r *Room) now() ([]byte, uint64, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := state{Sale: r.sale, Lab: r.lab}
	for _, m := range r.members {
		s.Instances = append(s.Instances, instanceState{
			Name: m.name, PID: m.instance().PID(), State: m.state, Ready: m.answered && m.state == running,
			Memory: m.memory, Latency: m.latency, CutOff: m.cutOff, load: m.load,
		})
	}
	first := r.members[0]
	kind := "redis"
	if r.stores.Embedded {
		kind = "embedded redis"
	}
	s.Redis = storeState{Kind: kind, State: r.redisIs, Line: first.redis != nil, Own: r.redis != nil, measured: r.redisNow}
	database, _, _ := strings.Cut(r.stores.Database, ":")
	s.Database = storeState{Kind: database, State: r.database, Line: first.database != nil, measured: r.databaseNow}
	text, _ := json.Marshal(s) //nolint:errchkjson // it has no values that JSON lacks
	return text, r.version, r.changed
}

// streamState sends the state and, at most four times a second, what has become of it.
func (r *Room) streamState(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	flush := http.NewResponseController(w)
	for {
		text, version, changed := r.now()
		if _, err := fmt.Fprintf(w, "id: %d\nevent: state\ndata: %s\n\n", version, text); err != nil {
			return
		}
		if err := flush.Flush(); err != nil {
			return
		}
		if !backoff.Sleep(req.Context(), 250*time.Millisecond) {
			return
		}
		select {
		case <-changed:
		case <-req.Context().Done():
			return
		}
	}
}
