package demo

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/show/buyers"
)

// As many dead instances of an earlier demo as there are own ones, and a dead leader, are no reason to begin.
func TestGatherWaitsForItsOwnInstances(t *testing.T) {
	own := make([]string, 0, 2)
	var asked int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		address := func(n int) string { return strings.TrimPrefix(own[n], "http://") }
		views := []string{
			`{"members":[{"name":"shop-4","address":"127.0.0.1:4"},{"name":"shop-5","address":"127.0.0.1:5"}],"leader":{"name":"shop-5","term":5}}`,
			`{"members":[{"name":"shop-1","address":"` + address(0) + `"},{"name":"shop-4","address":"127.0.0.1:4"}],"leader":{"name":"shop-1","term":6}}`,
			`{"members":[{"name":"shop-1","address":"` + address(0) + `"},{"name":"shop-2","address":"` + address(1) + `"}],"leader":{"name":"shop-5","term":5}}`,
			`{"members":[{"name":"shop-1","address":"` + address(0) + `"},{"name":"shop-2","address":"` + address(1) + `"}],"leader":{"name":"shop-2","term":7}}`,
		}
		fmt.Fprint(w, views[min(asked, len(views)-1)])
		asked++
	}))
	defer server.Close()
	own = append(own, server.URL, "http://127.0.0.1:2")
	shop := buyers.New(own, 1)
	defer shop.Close()
	got, err := gather(t.Context(), shop, []string{own[1], own[0]})
	if want := (Cluster{Members: []string{"shop-1", "shop-2"}, Leader: "shop-2", Term: 7}); err != nil || !cmp.Equal(got, want) {
		t.Errorf("after %d questions: %v, %s", asked, err, cmp.Diff(want, got))
	}
	asked = 0
	if got, err = gather(t.Context(), shop, nil); err != nil || got.Leader != "shop-5" || asked != 1 {
		t.Errorf("of a service that runs already: %+v after %d questions, %v", got, asked, err)
	}
}

// An instance that does not respond shows nothing about a strategy. One that refuses to sell does.
func TestSaleWithoutAResponseIsInconclusive(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	defer refusing.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for url, want := range map[string]string{refusing.URL: Broken, gone.URL: Inconclusive} {
		c := Config{Out: io.Discard, Instances: 3}.withDefaults()
		d := &demo{Config: c, shop: buyers.New([]string{url}, 1), printer: &printer{c}}
		if variant, err := d.variant(t.Context(), "conditional"); err != nil || variant.Verdict != want || variant.firstError == "" {
			t.Errorf("%+v, %v, want %s", variant, err, want)
		}
		d.shop.Close()
	}
}
