package blackbox_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"example.com/shop/internal/httpapi"
)

// TestRefusalsAreCheap sends the requests that are the most work to refuse. No limit comes before that, so none
// may cost much: ten of them at once less than 40 MB, even if nothing is collected.
func TestRefusalsAreCheap(t *testing.T) {
	const most = 4 << 20
	s := newHandler(t, httpapi.Config{Orders: new(recorder)})
	server := httptest.NewServer(s)
	defer server.Close()
	all := costlyHeads()
	for name, body := range costlyBodies() {
		if len(body) > 64<<10 {
			t.Fatalf("%s: a body of %d bytes is refused for its size", name, len(body))
		}
		all[name] = func() *http.Request { return post(body) }
	}
	refused(t, server.URL, post(`{}`)) // what is made once is made
	for name, request := range all {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var group sync.WaitGroup
		for range 10 {
			group.Go(func() { refused(t, server.URL, request()) })
		}
		group.Wait()
		runtime.ReadMemStats(&after)
		if one := (after.TotalAlloc - before.TotalAlloc) / 10; one > most {
			t.Errorf("%s: %d KiB for one request, want at most %d", name, one>>10, most>>10)
		}
	}
}

// costlyBodies returns bodies that break as many rules as fit into 64 KiB.
func costlyBodies() map[string]string {
	const size = 63 << 10
	fill := func(begin, each, end string) string {
		return begin + strings.TrimSuffix(strings.Repeat(each, (size-len(begin)-len(end))/len(each)), ",") + end
	}
	var members strings.Builder
	for i := 0; members.Len() < size; i++ {
		members.WriteString(`"` + strconv.FormatInt(int64(i), 36) + `":0,`)
	}
	members.WriteString(`"":0`)
	const items = `{"customer_id":"c1","items":[`
	return map[string]string{
		"empty items":                fill(items, `{},`, `]}`),
		"numbers for items":          fill(items, `0,`, `]}`),
		"texts for items":            fill(items, `"",`, `]}`),
		"arrays for items":           fill(items, `[],`, `]}`),
		"wrong items":                fill(items, `{"sku":"","quantity":0},`, `]}`),
		"unknown members":            `{` + members.String() + `}`,
		"unknown members of an item": items + `{` + members.String() + `}]}`,
		"one long member":            fill(`{"`, `~`, `":0}`),
		"a long customer":            fill(`{"customer_id":"`, `/`, `","items":[]}`),
		"a long number":              fill(items+`{"quantity":`, `9`, `}]}`),
		"escapes":                    fill(`{"customer_id":"`, `\u00e9`, `"}`),
		"nested":                     fill(items, strings.Repeat("[", 20)+strings.Repeat("]", 20)+",", `]}`),
		"nested too deep":            fill(items, strings.Repeat("[", 40)+strings.Repeat("]", 40)+",", `]}`),
	}
}

// costlyHeads returns requests whose head is as long as may be.
func costlyHeads() map[string]func() *http.Request {
	const size = 15 << 10
	get := func(path string, header http.Header) func() *http.Request {
		return func() *http.Request {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			maps.Copy(r.Header, header)
			return r
		}
	}
	query := new(strings.Builder)
	for i := 0; query.Len() < size; i++ {
		query.WriteString(strconv.FormatInt(int64(i), 36) + "&")
	}
	return map[string]func() *http.Request{
		"many parameters":     get("/api/v1/skus?"+query.String(), nil),
		"parameters repeated": get("/api/v1/skus?"+strings.Repeat("limit=1&", size/8), nil),
		"escaped path":        get("/api/v1/skus/"+strings.Repeat("%7e", size/3), nil),
		"long types":          get("/api/v1/events?types="+strings.Repeat("order,", size/6), nil),
		"long cursor":         get(orders+"?cursor="+strings.Repeat("A", size), nil),
		"many preferences":    func() *http.Request { return post(`{}`, "Prefer", strings.Repeat("a,", size/2)) },
		"quoted preferences":  func() *http.Request { return post(`{}`, "Prefer", strings.Repeat(`";`, size/2)) },
		"long key":            func() *http.Request { return post(`{}`, "Idempotency-Key", strings.Repeat("k", size)) },
		"many tags":           get(orders+"/x", http.Header{"If-None-Match": {strings.Repeat(`"",`, size/3)}}),
	}
}

// refused sends r to the server at url, which must refuse it as a mistake of the client.
func refused(t *testing.T, url string, r *http.Request) {
	t.Helper()
	sent, err := http.NewRequestWithContext(t.Context(), r.Method, url+r.URL.RequestURI(), r.Body)
	if err != nil {
		t.Error(err)
		return
	}
	sent.Header = r.Header
	resp, err := http.DefaultClient.Do(sent)
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnprocessableEntity && resp.StatusCode != http.StatusBadRequest {
		t.Errorf("%s %.40s...: %s", r.Method, r.URL, resp.Status)
	}
}
