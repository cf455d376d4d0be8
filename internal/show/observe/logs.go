package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"example.com/shop/internal/platform/backoff"
)

// ship sends what the instances log to VictoriaLogs each second, until ctx ends. Lines that it cannot send are lost.
func (s *shop) ship(ctx context.Context, url string) {
	var sent [instances]int64
	for backoff.Sleep(ctx, time.Second) {
		for i := range sent {
			name := fmt.Sprintf("shop-%d", i+1)
			lines := read(filepath.Join(s.stores.Dir, name+".log"), &sent[i])
			req, err := http.NewRequestWithContext(ctx, http.MethodPost,
				url+"/insert/jsonline?_stream_fields=instance,level&_msg_field=msg&_time_field=time&extra_fields=instance="+name, bytes.NewReader(lines))
			if err != nil || len(lines) == 0 {
				continue
			}
			if resp, err := http.DefaultClient.Do(req); err == nil {
				resp.Body.Close()
			}
		}
	}
}

// read returns the whole lines of a file from an offset on, which it moves. An instance that starts again empties its file.
func read(name string, from *int64) []byte {
	f, err := os.Open(name) //nolint:gosec // of our own instance
	if err != nil {
		return nil
	}
	defer f.Close()
	if is, err := f.Stat(); err == nil && is.Size() < *from {
		*from = 0
	}
	text, err := io.ReadAll(io.NewSectionReader(f, *from, 1<<20))
	if err != nil {
		return nil
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	*from += int64(len(text))
	return text
}
