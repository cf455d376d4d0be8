package blackbox_test

import (
	"net/http"
	"strconv"
	"strings"
)

type badRequest struct {
	name, method, path, body string
	header                   http.Header
	status                   int
	slug                     string
}

func badRequests(order string) []badRequest { //nolint:funlen // It is a table.
	var all []badRequest
	asJSON := http.Header{"Content-Type": {jsonType}}
	add := func(status int, slug, method, path string, bodies map[string]string) {
		for name, body := range bodies {
			all = append(all, badRequest{method + " " + path + " " + name, method, path, body, asJSON, status, slug})
		}
	}
	line := func(quantity string) string {
		return `{"customer_id":"c1","items":[{"sku":"s1","quantity":` + quantity + `}]}`
	}
	add(400, "malformed-request", http.MethodPost, orders, map[string]string{
		"no body":               "",
		"no JSON":               "customer_id=c1",
		"cut off":               basket[:len(basket)-1],
		"null":                  "null",
		"trailing bytes":        basket + "x",
		"byte order mark":       "\ufeff" + basket,
		"not UTF-8":             strings.Replace(basket, "c1", "c\xff", 1),
		"half a surrogate pair": strings.Replace(basket, "c1", `c\ud800`, 1),
		"same member twice":     `{"customer_id":"c1","customer_id":"c2","items":[{"sku":"s1","quantity":1}]}`,
		"too deep":              `{"customer_id":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`,
		"leading zero":          line("01"),
	})
	add(422, "invalid-request", http.MethodPost, orders, map[string]string{
		"unknown member":        `{"customer_id":"c1","items":[{"sku":"s1","quantity":1}],"price":0}`,
		"wrong case":            `{"Customer_ID":"c1","items":[{"sku":"s1","quantity":1}]}`,
		"no customer":           `{"items":[{"sku":"s1","quantity":1}]}`,
		"customer with markup":  strings.Replace(basket, "c1", "<b>", 1),
		"customer too long":     strings.Replace(basket, "c1", strings.Repeat("c", 65), 1),
		"customer a number":     strings.Replace(basket, `"c1"`, "1", 1),
		"items missing":         `{"customer_id":"c1"}`,
		"items empty":           `{"customer_id":"c1","items":[]}`,
		"too many items":        `{"customer_id":"c1","items":[` + strings.Repeat(`{"sku":"s1","quantity":1},`, 50) + `{"sku":"s1","quantity":1}]}`,
		"SKU malformed":         `{"customer_id":"c1","items":[{"sku":"s/1","quantity":1}]}`,
		"quantity zero":         line("0"),
		"quantity too large":    line("1001"),
		"quantity 1.5":          line("1.5"),
		"quantity 1e2":          line("1e2"),
		"quantity beyond int64": line("99999999999999999999"),
		"quantity true":         line("true"),
		"sum too large":         `{"customer_id":"c1","items":[{"sku":"s1","quantity":600},{"sku":"s1","quantity":600}]}`,
		"NUL escaped":           strings.Replace(basket, "c1", `c\u0000`, 1),
		"empty object":          `{}`,
		"many unknown members":  manyMembers(5000),
	})
	add(422, "unknown-sku", http.MethodPost, orders, map[string]string{
		"unknown SKU":           `{"customer_id":"c1","items":[{"sku":"nope","quantity":1}]}`,
		"one of two is unknown": `{"customer_id":"c1","items":[{"sku":"s1","quantity":1},{"sku":"nope","quantity":1}]}`,
	})

	add(422, "unknown-strategy", http.MethodPut, "/api/v1/skus/new", map[string]string{
		"unknown strategy": `{"on_hand":1,"strategy":"hope"}`,
	})
	add(422, "strategy-unavailable", http.MethodPut, "/api/v1/skus/new", map[string]string{
		"redis": `{"on_hand":1,"strategy":"redis"}`,
	})
	add(422, "invalid-request", http.MethodPut, "/api/v1/skus/new", map[string]string{
		"negative":         `{"on_hand":-1,"strategy":"naive"}`,
		"too much":         `{"on_hand":1000000001,"strategy":"naive"}`,
		"no strategy":      `{"on_hand":1}`,
		"strategy and NUL": `{"on_hand":1,"strategy":"naive\u0000"}`,
	})
	add(422, "invalid-request", http.MethodPut, "/api/v1/cluster/config/permits", map[string]string{
		"NUL": `{"value":"8\u0000"}`, "newline": `{"value":"8\n"}`,
	})
	add(422, "invalid-request", http.MethodPost, "/api/v1/skus/s1/restock", map[string]string{"zero": `{"quantity":0}`})
	add(404, "not-found", http.MethodPost, "/api/v1/skus/nope/restock", map[string]string{"unknown SKU": `{"quantity":1}`})
	add(422, "invalid-request", http.MethodPost, order+"/pay", map[string]string{"space": `{"payment_id":" p1"}`})
	add(404, "not-found", http.MethodPost, unknown+"/pay", map[string]string{"unknown order": `{"payment_id":"p1"}`})
	add(422, "invalid-request", http.MethodPost, order+"/extend", map[string]string{
		"zero": `{"by_seconds":0}`, "longer than it may wait": `{"by_seconds":3600}`, "another unit": `{"by_minutes":1}`,
	})
	add(404, "not-found", http.MethodPost, unknown+"/extend", map[string]string{"unknown order": `{"by_seconds":60}`})
	add(400, "malformed-request", http.MethodPost, order+"/cancel", map[string]string{"object": `{}`, "text": "please", "space": " "})
	add(400, "malformed-request", http.MethodGet, order, map[string]string{"body of a GET": `{}`})
	return append(all, append(badPaths(order), badHeaders()...)...)
}

func badPaths(order string) []badRequest {
	var all []badRequest
	for _, path := range []string{
		orders + "/1", orders + "/0198c5a2-7d10-7c3e-9b1f-3f2a6f1f9d0", orders + "/0198C5A2-7D10-7C3E-9B1F-3F2A6F1F9D01",
		orders + "/%7B0198c5a2-7d10-7c3e-9b1f-3f2a6f1f9d01%7D", orders + "/0198c5a27d107c3e9b1f3f2a6f1f9d01", orders + "/%00", orders + "/%ff",
		orders + "/1%20OR%201=1", "/api/v1/skus/%00", "/api/v1/skus/%ff", "/api/v1/skus/-x", "/api/v1/skus/a%20b", "/api/v1/skus/" + strings.Repeat("s", 65),
		"/api/v1/skus/%7Bs1%7D", "/api/v1/skus/a%2Fb", "/api/v1/skus/%C3%A9", "/api/v1/skus/s1%0A",
		"/api/v1/skus?limit=0", "/api/v1/skus?limit=101", "/api/v1/skus?limit=-1", "/api/v1/skus?limit=1.0", "/api/v1/skus?limit=1e1", "/api/v1/skus?limit=%2B1",
		"/api/v1/skus?limit=01", "/api/v1/skus?limit=", "/api/v1/skus?limit=ten", "/api/v1/skus?limit=1&limit=2", "/api/v1/skus?limit=9223372036854775808",
		"/api/v1/skus?after=", "/api/v1/skus?after=%00", "/api/v1/skus?after='", "/api/v1/skus?Limit=1", "/api/v1/skus?page=1", "/api/v1/skus?limit=1;after=a",
		"/api/v1/skus?limit=%zz", "/api/v1/skus/s1?x=1", order + "?full=1", "/api/v1/audit?sku=", "/api/v1/audit?sku=a/b", "/api/v1/audit?sku=s1&sku=s2", "/api/v1/audit?SKU=s1",
		"/api/v1/openapi.yaml?v=1",
	} {
		all = append(all, badRequest{name: "GET " + path, method: http.MethodGet, path: path, status: 400, slug: "malformed-request"})
	}
	for _, path := range []string{
		unknown, "/api/v1/skus/nope", "/api/v1/audit?sku=nope", "/api/v1/skus/", "/api/v1/skus/a/b", "/api/v1/orders/", "/api/v2/skus",
		"/API/v1/skus", "//api/v1/skus", "/room", "/metrics", "/debug/pprof/", "/api/v1/skus/../orders", "/favicon.ico",
	} {
		all = append(all, badRequest{name: "GET " + path, method: http.MethodGet, path: path, status: 404, slug: "not-found"})
	}
	for path, methods := range map[string][]string{
		"/api/v1/skus":            {http.MethodPost, http.MethodDelete, http.MethodPut},
		"/api/v1/skus/s1":         {http.MethodPost, http.MethodPatch, http.MethodDelete},
		"/api/v1/skus/s1/restock": {http.MethodGet, http.MethodPut},
		orders:                    {http.MethodDelete, http.MethodPut, http.MethodTrace, "BREW"},
		order:                     {http.MethodPut, http.MethodDelete, http.MethodPost},
		order + "/pay":            {http.MethodGet},
		order + "/cancel":         {http.MethodGet, http.MethodDelete},
		order + "/extend":         {http.MethodGet, http.MethodPatch},
		"/livez":                  {http.MethodPost},
	} {
		for _, m := range methods {
			all = append(all, badRequest{name: m + " " + path, method: m, path: path, status: 405, slug: "method-not-allowed"})
		}
	}
	return all
}

func badHeaders() []badRequest {
	var all []badRequest
	for name, h := range map[string]http.Header{
		"none":             {},
		"text":             {"Content-Type": {"text/plain"}},
		"form":             {"Content-Type": {"application/x-www-form-urlencoded"}},
		"suffix":           {"Content-Type": {"application/problem+json"}},
		"longer":           {"Content-Type": {"application/jsonp"}},
		"twice":            {"Content-Type": {jsonType, jsonType}},
		"list":             {"Content-Type": {"application/json, text/plain"}},
		"charset":          {"Content-Type": {"application/json; charset=utf-16"}},
		"charset empty":    {"Content-Type": {"application/json; charset="}},
		"other parameter":  {"Content-Type": {"application/json; version=2"}},
		"broken parameter": {"Content-Type": {"application/json; charset"}},
		"compressed":       {"Content-Type": {jsonType}, "Content-Encoding": {"gzip"}},
	} {
		all = append(all, badRequest{"Content-Type " + name, http.MethodPost, orders, basket, h, 415, "unsupported-media-type"})
	}
	return append(all, badRequest{
		"too large", http.MethodPost, orders, basket + strings.Repeat(" ", 64<<10),
		http.Header{"Content-Type": {jsonType}},
		413, "body-too-large",
	})
}

func manyMembers(n int) string {
	members := make([]string, n)
	for i := range members {
		members[i] = `"m` + strconv.Itoa(i) + `":0`
	}
	return "{" + strings.Join(members, ",") + "}"
}
