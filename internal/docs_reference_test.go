package internal_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/shop/internal/cluster/sqlcluster"
	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/timeout/sqltimers"
)

// firstColumn returns the code in the first column of the tables with that header.
func (p page) firstColumn(t *testing.T, header ...string) []string {
	t.Helper()
	all := map[string]bool{}
	for _, row := range p.table(t, header...) {
		all[strings.Trim(row[0], "`")] = true
	}
	return slices.Sorted(maps.Keys(all))
}

func sourceOf(t *testing.T, glob string) (all string) {
	t.Helper()
	files, err := filepath.Glob(glob)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v", glob, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all += string(text)
	}
	return all
}

// docs/reference/problems.md lists the problem types with their status.
func TestProblemsPage(t *testing.T) {
	t.Parallel()
	statuses := map[string]int{
		"BadRequest": 400, "Unauthorized": 401, "Forbidden": 403, "NotFound": 404, "MethodNotAllowed": 405, "Conflict": 409,
		"RequestEntityTooLarge": 413, "UnsupportedMediaType": 415, "UnprocessableEntity": 422, "TooManyRequests": 429,
		"InternalServerError": 500, "ServiceUnavailable": 503,
	}
	paths := map[string]string{}
	for _, m := range regexp.MustCompile(`(Type\w+) +ProblemType = "/docs/problems/([^"]+)"`).FindAllStringSubmatch(sourceOf(t, "httpapi/openapi.gen.go"), -1) {
		paths[m[1]] = m[2]
	}
	var want []string
	form := regexp.MustCompile(`(?m)^\t(Type\w+): \{\s+status: http\.Status(\w+), title: "`)
	for _, m := range form.FindAllStringSubmatch(sourceOf(t, "httpapi/problem_types*.go"), -1) {
		want = append(want, fmt.Sprintf("%s %d", paths[m[1]], statuses[m[2]]))
	}
	var got []string
	for _, row := range readPages(t)["docs/reference/problems.md"].table(t, "type", "status") {
		got = append(got, strings.Trim(row[0], "`")+" "+row[1])
	}
	same(t, got, want, len(paths))
}

// docs/reference/schema.md lists the tables that migrations create.
func TestSchemaPage(t *testing.T) {
	t.Parallel()
	text := sourceOf(t, "sqlstore/migrations/*.sql") + sourceOf(t, "sqlstore/migrate.go")
	for _, e := range []*sqldb.Engine{sqldb.SQLite(), sqldb.MariaDB()} {
		text += strings.Join(slices.Concat(sqltimers.Schema(e), sqllock.Schema(e), sqlcluster.Schema(e)), "\n")
	}
	tables := map[string]bool{}
	for _, m := range regexp.MustCompile(`CREATE TABLE IF NOT EXISTS (\w+)`).FindAllStringSubmatch(text, -1) {
		tables[m[1]] = true
	}
	same(t, readPages(t)["docs/reference/schema.md"].firstColumn(t, "table", "a row is"), slices.Sorted(maps.Keys(tables)), 10)
}

// docs/reference/redis-keys.md lists every prefix of keys and channels that the packages begin with "shop:".
func TestRedisKeysPage(t *testing.T) {
	t.Parallel()
	said := readPages(t)["docs/reference/redis-keys.md"].firstColumn(t, "prefix", "written by", "content")
	form := regexp.MustCompile(`(?m)(?:[pP]refix|key):?\s*[:=,]?.*"(shop:[a-z:{}]*)`)
	found := map[string]bool{}
	for file, text := range goSources(t) {
		for _, m := range form.FindAllStringSubmatch(text, -1) {
			prefix := m[1]
			if prefix == "shop:" {
				prefix = "rate:shop:" // the library of package ratelimit puts its own before it
			}
			found[prefix] = true
			if !slices.ContainsFunc(said, func(one string) bool { return strings.HasPrefix(one, strings.TrimSuffix(prefix, "{")) }) {
				t.Errorf("%s: keys begin with %s, and the page does not have that", file, prefix)
			}
		}
	}
	if len(found) < 10 {
		t.Errorf("only %d prefixes are in the sources: %q", len(found), slices.Sorted(maps.Keys(found)))
	}
}

// goSources are the Go files of the program below internal, by path.
func goSources(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "test"+string(filepath.Separator)) {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// same compares two lists in any order. The wanted one has at least so many entries.
func same(t *testing.T, got, want []string, least int) {
	t.Helper()
	for _, one := range want {
		if !slices.Contains(got, one) {
			t.Errorf("the page does not have %s", one)
		}
	}
	for _, one := range got {
		if !slices.Contains(want, one) {
			t.Errorf("the page has %s, and the code does not", one)
		}
	}
	if len(want) < least {
		t.Errorf("only %d entries were found in the code", len(want))
	}
}
