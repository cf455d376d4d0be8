package testbed

import (
	"context"
	"net/http"
)

// HTTPConfig says how to run a program that serves HTTP.
type HTTPConfig struct {
	// Program is its name, which is in PATH.
	Program string
	// Args returns its arguments. It listens on address, and keeps its files in folder.
	Args func(address, folder string) []string
	// Ready is a path that it answers with 200 once it serves.
	Ready string
}

// HTTP is a program that serves HTTP and runs as a child process.
type HTTP struct {
	*Process
	addr string
}

// StartHTTP runs a program on a free loopback port, in a temporary folder that Close removes, and returns when it serves.
func StartHTTP(ctx context.Context, cfg HTTPConfig) (*HTTP, error) {
	process, err := openProcess(ctx, cfg.Program, cfg.Program)
	if err != nil {
		return nil, err
	}
	h := &HTTP{Process: process}
	process.ready = func(ctx context.Context, _ int) error {
		ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
		return askJSON(ctx, http.MethodGet, h.URL()+cfg.Ready, "", nil)
	}
	return h, process.startOn(ctx, func(port int) error {
		h.addr = loopback(port)
		process.args = cfg.Args(h.addr, process.folder)
		return nil
	})
}

// URL is the server's address as http://HOST:PORT.
func (h *HTTP) URL() string { return "http://" + h.addr }
