package blackbox_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const (
	orders   = "/api/v1/orders"
	unknown  = orders + "/0198c5a2-7d10-7c3e-9b1f-3f2a6f1f9d01"
	jsonType = "application/json"
)

// TestInvalidInputIsRefused sends what a client can get wrong. Each request is refused with
// a problem of a stable type, and changes nothing.
func TestInvalidInputIsRefused(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.must(t, 201, http.MethodPut, "/api/v1/skus/s1", `{"on_hand":100000,"strategy":"conditional"}`)
	s.must(t, 201, http.MethodPut, "/api/v1/skus/s2", `{"on_hand":100000,"strategy":"conditional"}`)
	order := "/api/v1/orders/" + s.place(t)

	for _, c := range badRequests(order) {
		t.Run(c.name, func(t *testing.T) {
			before := s.books(t)
			r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
			maps.Copy(r.Header, c.header)
			status, _, problem := s.send(t, r)
			if status != c.status {
				t.Errorf("status %d, want %d: %v", status, c.status, problem)
			}
			wantType(t, problem, c.slug)
			if after := s.books(t); after != before {
				t.Errorf("books changed from\n%s\nto\n%s", before, after)
			}
		})
	}
}

// TestValidInputIsAccepted is the other side of the fence: what is unusual and allowed.
func TestValidInputIsAccepted(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.must(t, 201, http.MethodPut, "/api/v1/skus/s1", `{"on_hand":1000000000,"strategy":"conditional"}`)
	full := basket + strings.Repeat(" ", 64<<10-len(basket))
	for _, c := range []struct{ contentType, body string }{
		{"application/json; charset=utf-8", basket},
		{"application/json;charset=UTF-8", basket},
		{"Application/JSON", "\r\n\t " + basket + "\n"},
		{jsonType, full},
		{jsonType, `{"items":[{"quantity":1000,"sku":"\u00731"}],"customer_id":"a.b_c:d@e-f"}`},
		{jsonType, `{"customer_id":"c1","items":[{"sku":"s1","quantity":400},{"sku":"s1","quantity":600}]}`},
		{jsonType, `{"customer_id":"c1","items":[` + strings.Repeat(`{"sku":"s1","quantity":1},`, 49) + `{"sku":"s1","quantity":1}]}`},
	} {
		for _, chunked := range []bool{false, true} {
			r := httptest.NewRequest(http.MethodPost, orders, strings.NewReader(c.body))
			r.Header.Set("Content-Type", c.contentType)
			if chunked {
				r.ContentLength = -1
			}
			if status, _, answer := s.send(t, r); status != http.StatusCreated {
				t.Errorf("%.80s, chunked %v: %d %v", c.body, chunked, status, answer)
			}
		}
	}
}

// TestBodyOfUnknownLength has no Content-Length to be refused by.
func TestBodyOfUnknownLength(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	send := func(path string, body io.Reader) (int, map[string]any) {
		r := httptest.NewRequest(http.MethodPost, path, body)
		r.Header.Set("Content-Type", jsonType)
		r.ContentLength = -1
		status, _, answer := s.send(t, r)
		return status, answer
	}
	status, p := send(orders, io.MultiReader(strings.NewReader(basket), bytes.NewReader(bytes.Repeat([]byte(" "), 1<<20))))
	if wantType(t, p, "body-too-large"); status != http.StatusRequestEntityTooLarge {
		t.Errorf("endless body: %d", status)
	}
	status, p = send(unknown+"/cancel", strings.NewReader("x"))
	if wantType(t, p, "malformed-request"); status != http.StatusBadRequest {
		t.Errorf("body of a cancellation: %d", status)
	}
	if status, p = send(unknown+"/cancel", strings.NewReader("")); status != http.StatusNotFound {
		t.Errorf("empty body of a cancellation: %d %v", status, p)
	}
}

// TestViolationsNameTheirPlace keeps refusals useful to whoever wrote the client.
func TestViolationsNameTheirPlace(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.must(t, 201, http.MethodPut, "/api/v1/skus/s1", `{"on_hand":1,"strategy":"conditional"}`)
	for body, want := range map[string]string{
		`{"customer_id":"c1","items":[{"sku":"s1","quantity":1},{"sku":"s1","quantity":0}]}`:     "#/items/1/quantity",
		`{"customer_id":"c1","items":[{"sku":"s1","quantity":1},{"sku":"s1","quantity":1.5}]}`:   "#/items/1/quantity",
		`{"customer_id":" ","items":[{"sku":"s1","quantity":1}]}`:                                "#/customer_id",
		`{"customer_id":"","items":[{"sku":"s1","quantity":1}]}`:                                 "#/customer_id", // too short, and of the wrong form
		`{"customer_id":"c1","items":[]}`:                                                        "#/items",
		`{"customer_id":"c1","items":[{"sku":"s1","quantity":600},{"sku":"s1","quantity":600}]}`: "#/items/1/quantity",
		`{"customer_id":"c1","items":[{"sku":"s1","quantity":1},{"sku":"nope","quantity":1}]}`:   "#/items/1/sku",
	} {
		p := s.must(t, 422, http.MethodPost, orders, body)
		list, _ := p["errors"].([]any)
		if len(list) != 1 || list[0].(map[string]any)["pointer"] != want {
			t.Errorf("%s: %v, want the place %s", body, p, want)
		}
	}
}

// TestRefusalsNameTheAllowedValues, in the words of the API and not of the language that it is written in.
func TestRefusalsNameTheAllowedValues(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.must(t, 201, http.MethodPut, "/api/v1/skus/s1", `{"on_hand":9,"strategy":"conditional"}`)
	order := orders + "/" + s.place(t)
	for _, c := range []struct{ method, path, body, want string }{
		{"GET", "/api/v1/skus?limit=0", "", "an integer from 1 to 100"},
		{"GET", orders + "?status=LOST", "", "QUEUED, PENDING, CONFIRMED, CANCELLED, EXPIRED, REJECTED"},
		{"GET", orders + "?sku=-", "", "1 to 64 letters, digits"},
		{"GET", orders + "?cursor=!", "", "^[A-Za-z0-9_-]+$"},
		{"GET", orders + "/1", "", "A UUID in lower case"},
		{"PUT", "/api/v1/skus/s2", `{"on_hand":1,"strategy":"redlock-cohort"}`, `"redlock-cohort" needs --redlock`},
		{"PUT", "/api/v1/skus/s2", `{"on_hand":1,"strategy":"naive\u0000"}`, "The name of a strategy, without control characters"},
		{"PUT", "/api/v1/skus/s2", `{"on_hand":1,"strategy":"naïve"}`, "redlock-cohort, zookeeper-cohort"},
		{"POST", order + "/extend", `{"by_seconds":7776000}`, "#/by_seconds"},
		{"POST", order + "/extend", `{"by_seconds":7776001}`, "at most 7776000"},
		{"PUT", "/api/v1/skus/s2", `{"on_hand":1000000001,"strategy":"naive"}`, "at most 1000000000"},
		{"POST", order + "/extend", `{"by_seconds":3600}`, "#/by_seconds"},
		{"POST", orders, `{"customer_id":"c1","items":[{"sku":"no","quantity":1},{"sku":"s1","quantity":1},{"sku":"nope","quantity":1}]}`, "#/items/2/sku"},
	} {
		_, _, p := s.call(t, c.method, c.path, c.body)
		if text := fmt.Sprint(p); !strings.Contains(text, c.want) || strings.Contains(text, "0s") {
			t.Errorf("%s %s %s: %s, want %s", c.method, c.path, c.body, text, c.want)
		}
	}
}
