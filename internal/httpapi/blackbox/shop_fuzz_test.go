package blackbox_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// FuzzShop reads bytes as requests of three customers to a shop of three SKUs, some of them repeated with their keys.
// No request fails, a final order does not change, a repeated request gets its response again, and the invariants
// hold.
func FuzzShop(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 0, 1, 0, 2, 0})                                     // place, pay, cancel
	f.Add([]byte{0, 0x45, 0, 0x45, 1, 0x40, 1, 0x40, 2, 0x40})          // the same with keys, twice
	f.Add([]byte{0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8}) // sold out
	f.Add([]byte{0, 7, 3, 0, 3, 0, 3, 0, 3, 0, 2, 0, 1, 0})             // extend, cancel, pay
	f.Add([]byte{0, 1, 2, 0, 0, 1, 2, 1, 0, 1, 2, 2, 4, 1, 0, 0xff, 1, 3})
	f.Add([]byte{4, 0x41, 4, 0x41, 4, 0x81, 0, 0x42, 4, 0x42}) // restock with keys
	f.Add([]byte{5, 0, 0, 9, 5, 1, 1, 0, 5, 2, 6, 0, 6, 7})
	s := newShop(f)
	n := 0
	f.Fuzz(func(t *testing.T, program []byte) {
		n++
		w := &customers{T: t, shop: s, name: fmt.Sprintf("f%d-", n), state: make(map[string]string), answers: make(map[string]string)}
		for i, strategy := range []string{"conditional", "optimistic", "for-update"} {
			s.must(t, 201, http.MethodPut, "/api/v1/skus/"+w.sku(byte(i)), fmt.Sprintf(`{"on_hand":4,"strategy":%q,"purchase_limit":%d}`, strategy, 3*i))
		}
		for i := 0; i+1 < len(program) && i < 80; i += 2 {
			w.step(program[i], program[i+1])
		}
		for i := range byte(3) {
			audit := s.must(t, 200, http.MethodGet, "/api/v1/audit?sku="+w.sku(i), "")
			if audit["ok"] != true {
				t.Errorf("after %v: %v", program, audit)
			}
		}
	})
}

// customers send requests and remember what they received.
type customers struct {
	*testing.T
	*shop
	name    string
	ids     []string
	state   map[string]string // of orders
	answers map[string]string // of requests with keys, by request
}

func (w *customers) sku(arg byte) string { return w.name + string('a'+rune(arg%3)) }

// step sends one request. The lowest bits of arg choose what it is about, the highest ones a key.
func (w *customers) step(op, arg byte) {
	id := someOrder
	if len(w.ids) > 0 {
		id = w.ids[int(arg&0x3f)%len(w.ids)]
	}
	switch op % 7 {
	case 0:
		lines := make([]string, 0, 3)
		for i := range arg/3%3 + 1 {
			lines = append(lines, fmt.Sprintf(`{"sku":%q,"quantity":%d}`, w.sku(arg+i*arg), 1+(arg>>i)%3))
		}
		w.send(arg, orders, fmt.Sprintf(`{"customer_id":"%sc%d","items":[%s]}`, w.name, arg%3, strings.Join(lines, ",")))
	case 1:
		w.send(arg, orders+"/"+id+"/pay", fmt.Sprintf(`{"payment_id":"p%d"}`, arg%2))
	case 2:
		w.send(arg, orders+"/"+id+"/cancel", "")
	case 3:
		w.send(arg, orders+"/"+id+"/extend", fmt.Sprintf(`{"by_seconds":%d}`, 1+int(arg&7)*300))
	case 4:
		w.send(arg, "/api/v1/skus/"+w.sku(arg)+"/restock", fmt.Sprintf(`{"quantity":%d}`, 1+arg%2))
	case 5:
		w.look(id)
	case 6:
		w.call(w.T, http.MethodGet, fmt.Sprintf("%s?limit=%d&sku=%s", orders, 1+arg%5, w.sku(arg)), "")
	}
	for _, id := range w.ids {
		w.look(id)
	}
}

// send sends a request, with one of three keys or without one.
func (w *customers) send(arg byte, path, body string) {
	w.Helper()
	r := post(body)
	r.URL.Path, r.RequestURI = path, path
	if body == "" {
		r.Header.Del("Content-Type")
	}
	key := arg >> 6
	if key > 0 {
		r.Header.Set("Idempotency-Key", fmt.Sprintf("%s%d", w.name, key))
	}
	status, header, raw := w.do(r)
	w.conforms(w.T, r, status, header, raw)
	if status >= 500 {
		w.Errorf("%s %s: %d %s", path, body, status, raw)
	}
	if key > 0 && (status < 300 || status == http.StatusConflict) {
		request := fmt.Sprint(key, path, body)
		answer := fmt.Sprint(status, header.Get("Location"), string(raw))
		first, again := w.answers[request]
		if again != (header.Get("Idempotent-Replayed") != "") || again && first != answer {
			w.Errorf("%s %s with the key %d: first %q, then %q", path, body, key, first, answer)
		}
		w.answers[request] = answer
	}
	if at := header.Get("Location"); status == http.StatusCreated && header.Get("Idempotent-Replayed") == "" {
		w.ids = append(w.ids, strings.TrimPrefix(at, orders+"/"))
	}
}

// look reads an order. One that is final stays as it is.
func (w *customers) look(id string) {
	w.Helper()
	status, _, o := w.call(w.T, http.MethodGet, orders+"/"+id, "")
	if status == http.StatusNotFound {
		return
	}
	was, now := w.state[id], fmt.Sprint(o["status"])
	if was != "" && was != now && was != "PENDING" {
		w.Errorf("%s was %s and is %s", id, was, now)
	}
	w.state[id] = now
}
