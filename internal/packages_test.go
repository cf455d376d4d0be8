package internal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/packages.md, docs/reference/metrics.md and the instruments of the schema")

const packagesPage = "../docs/packages.md"

// listed is a package as go list describes it.
type listed struct {
	ImportPath, Doc string
	Imports         []string
}

// docs/packages.md shows the packages as they are. `make gen` writes it.
func TestPackagesPage(t *testing.T) {
	t.Parallel()
	page := packages(t)
	if *update {
		if err := os.WriteFile(packagesPage, page, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	is, err := os.ReadFile(packagesPage)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(is, page) {
		t.Error("docs/packages.md is stale: make gen")
	}
}

// A newcomer finds sixteen rooms below internal, and none that leads back to itself.
func TestRooms(t *testing.T) {
	t.Parallel()
	all := list(t)
	imports, rooms := collapse(all), map[string]bool{}
	for _, p := range all {
		rooms[room(p.ImportPath)] = true
	}
	delete(rooms, "cmd/shop")
	if len(rooms) < 12 || len(rooms) > 16 {
		t.Errorf("%d rooms: %q", len(rooms), slices.Sorted(maps.Keys(rooms)))
	}
	for r := range rooms {
		if detour(imports, r, r) {
			t.Errorf("%s imports itself by way of others", r)
		}
	}
}

// packages returns the page.
func packages(t *testing.T) []byte {
	t.Helper()
	all := list(t)
	var page bytes.Buffer
	page.WriteString("# Packages\n\nAn arrow means \"imports\". Folders below a package are part of it here, " +
		"and an arrow is left out where a longer way leads to the same package. `make gen` writes this page.\n\n```mermaid\nflowchart TD\n")
	rooms := collapse(all)
	for _, from := range slices.Sorted(maps.Keys(rooms)) {
		for _, to := range slices.Sorted(maps.Keys(rooms[from])) {
			if !detour(rooms, from, to) {
				fmt.Fprintf(&page, "  %s --> %s\n", from, to)
			}
		}
	}
	page.WriteString("```\n\n| package | what it is |\n|---|---|\n")
	for _, p := range all {
		name := short(p.ImportPath)
		fmt.Fprintf(&page, "| [%s](../%s) | %s |\n", strings.TrimPrefix(name, "internal/"), name, strings.NewReplacer("[", "", "]", "").Replace(p.Doc))
	}
	return page.Bytes()
}

// list returns the packages of this module that are not only tests, by path.
func list(t *testing.T) (all []listed) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Doc,Imports", "../cmd/...", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := in.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if p.Doc == "" && len(p.Imports) == 0 {
			continue
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b listed) int { return strings.Compare(a.ImportPath, b.ImportPath) })
	return all
}

// short returns a path below this module.
func short(path string) string { return strings.TrimPrefix(path, "example.com/shop/") }

// room returns the part of a path that a package and the folders below it share.
func room(path string) string {
	parts := strings.Split(short(path), "/")
	if parts[0] == "cmd" {
		return "cmd/" + parts[1]
	}
	return parts[1]
}

// collapse returns who imports whom, by room.
func collapse(all []listed) map[string]map[string]bool {
	rooms := make(map[string]map[string]bool)
	for _, p := range all {
		from := room(p.ImportPath)
		if kit(p.ImportPath) {
			continue
		}
		for _, imported := range p.Imports {
			if !strings.HasPrefix(imported, "example.com/shop/") || room(imported) == from {
				continue
			}
			if rooms[from] == nil {
				rooms[from] = make(map[string]bool)
			}
			rooms[from][room(imported)] = true
		}
	}
	return rooms
}

// kit reports whether a package is for tests.
func kit(path string) bool {
	return strings.HasSuffix(path, "test") || strings.Contains(path, "/testbed")
}

// detour reports whether there is a way from a room to another that is longer than one import.
func detour(rooms map[string]map[string]bool, from, to string) bool {
	seen := map[string]bool{}
	var reaches func(at string) bool
	reaches = func(at string) bool {
		if at == to {
			return true
		}
		if seen[at] || at == from {
			return false
		}
		seen[at] = true
		return slices.ContainsFunc(slices.Collect(maps.Keys(rooms[at])), reaches)
	}
	for next := range rooms[from] {
		if next != to && reaches(next) {
			return true
		}
	}
	return false
}
