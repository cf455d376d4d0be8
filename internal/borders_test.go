// Package internal_test checks what the packages reach by their imports and by the imports of these. depguard, in
// .golangci.yml, sees direct imports only.
package internal_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "example.com/shop/internal/"

// infrastructure is what the domain and the primitives know as interfaces only.
var infrastructure = []string{
	"github.com/redis/go-redis", "github.com/go-redis/redis_rate", "gorm.io", "github.com/gin-gonic", "github.com/go-zookeeper/zk",
	"go.etcd.io/etcd", "github.com/go-sql-driver/mysql", "github.com/glebarez",
}

// shop is what a package does not know that could be lifted out of this repository.
var shop = []string{
	module + "order", module + "stock", module + "sqlstore", module + "httpapi", module + "telemetry", module + "show",
	module + "app", module + "cli", "example.com/shop/cmd",
}

// borders is what a package must not reach by any way.
var borders = map[string][]string{
	"app":                {module + "show"},
	"order":              slices.Concat(infrastructure, []string{module + "sqlstore", module + "httpapi", module + "identity", module + "events"}),
	"stock":              slices.Concat(infrastructure, []string{module + "order", module + "sqlstore", module + "httpapi"}),
	"platform/backoff":   slices.Concat(infrastructure, shop, []string{module}),
	"events/broadcast":   shop,
	"cluster":            slices.Concat(infrastructure, shop),
	"dlock":              slices.Concat(infrastructure, shop),
	"events":             slices.Concat(infrastructure, shop),
	"idempotency":        slices.Concat(infrastructure, shop, []string{module}),
	"identity":           slices.Concat(infrastructure, shop),
	"platform/party":     slices.Concat(infrastructure, shop, []string{module}),
	"dlock/permits":      slices.Concat(infrastructure, shop),
	"httpapi/ratelimit":  shop,
	"platform/sqldb":     shop,
	"platform/storeurl":  slices.Concat(infrastructure, shop, []string{module}),
	"timeout":            slices.Concat(infrastructure, shop),
	"stock/waitlist":     slices.Concat(infrastructure, shop),
	"platform/zookeeper": shop,
}

func TestBorders(t *testing.T) {
	t.Parallel()
	for pkg, denied := range borders {
		t.Run(pkg, func(t *testing.T) {
			t.Parallel()
			for _, dep := range reached(t, module+pkg) {
				if dep == module+pkg {
					continue
				}
				if i := slices.IndexFunc(denied, func(d string) bool { return within(dep, d) }); i >= 0 {
					t.Errorf("%s reaches %s", pkg, dep)
				}
			}
		})
	}
}

// within reports whether a package is the border or is below it.
func within(dep, border string) bool {
	return dep == border || strings.HasPrefix(dep, strings.TrimSuffix(border, "/")+"/")
}

// reached returns the packages that pkg imports, by any way, and pkg.
func reached(t *testing.T, pkg string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", pkg).Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, pkg) {
		t.Fatalf("%s is not listed among %d packages", pkg, len(deps))
	}
	return deps
}
