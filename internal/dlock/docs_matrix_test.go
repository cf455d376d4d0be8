package dlock_test

import (
	"go/ast"
	"maps"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/etcdlock"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/dlock/redisrw"
	"example.com/shop/internal/dlock/redissem"
	"example.com/shop/internal/dlock/redlock"
	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/dlock/zklock"
)

// backend is a column of the matrix: what can be acquired of a store.
type backend struct {
	name  string
	types []reflect.Type // pointers
	kit   string         // the folder of harnesses that its packages share; may be empty
}

// folders are those of its packages.
func (b backend) folders() (all []string) {
	for _, of := range b.types {
		if name := path.Base(of.Elem().PkgPath()); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

func backends() []backend {
	return []backend{
		{"memlock", []reflect.Type{
			reflect.TypeFor[*memlock.Locker](), reflect.TypeFor[*memlock.Cond](),
		}, ""},
		{"redislock", []reflect.Type{
			reflect.TypeFor[*redislock.Locker](), reflect.TypeFor[*redisrw.RW](),
			reflect.TypeFor[*redissem.Semaphore](), reflect.TypeFor[*redislock.Cond](),
		}, "dlocktest/redistest"},
		{"redlock", []reflect.Type{reflect.TypeFor[*redlock.Locker]()}, ""},
		{"zklock", []reflect.Type{reflect.TypeFor[*zklock.Locker]()}, ""},
		{"etcdlock", []reflect.Type{reflect.TypeFor[*etcdlock.Locker]()}, ""},
		{"sqllock", []reflect.Type{reflect.TypeFor[*sqllock.Locker]()}, ""},
	}
}

// capabilities are the interfaces that a type can have.
func capabilities() map[string]reflect.Type {
	return map[string]reflect.Type{
		"MultiLocker": reflect.TypeFor[dlock.MultiLocker](), "EachLocker": reflect.TypeFor[dlock.EachLocker](),
		"Inspector": reflect.TypeFor[dlock.Inspector](), "ForceReleaser": reflect.TypeFor[dlock.ForceReleaser](),
		"CounterRaiser": reflect.TypeFor[dlock.CounterRaiser](),
		"RWLocker":      reflect.TypeFor[dlock.RWLocker](), "Semaphore": reflect.TypeFor[dlock.Semaphore](),
		"Resizer": reflect.TypeFor[dlock.Resizer](), "Cond": reflect.TypeFor[dlock.Cond](),
	}
}

// typed returns the type with that name, or nil.
func (b backend) typed(name string) reflect.Type {
	for _, of := range b.types {
		if of.Elem().Name() == name {
			return of
		}
	}
	return nil
}

// has reports whether b has what a row names: the capability of a type, or a field of a harness that its tests set.
// If the row names neither, known is false.
func (b backend) has(code []string, set map[string]bool) (has, known bool) {
	if len(code) == 1 {
		return set[code[0]], fields()[code[0]]
	}
	of := b.typed(code[0])
	capability, known := capabilities()[code[1]]
	return known && of != nil && of.Implements(capability), known
}

// fields are those of the harnesses that say what a backend can do, or what a test can do
// to it. The others only carry a case through.
func fields() map[string]bool {
	all := map[string]bool{}
	for _, of := range []reflect.Type{
		reflect.TypeFor[dlocktest.Harness](), reflect.TypeFor[dlocktest.RWHarness](),
		reflect.TypeFor[dlocktest.SemaphoreHarness](), reflect.TypeFor[dlocktest.CondHarness](),
	} {
		for field := range of.Fields() {
			switch field.Name {
			case "New", "TTL", "Expire", "Leftovers", "Crowd", "AtOnce", "Bubble", "Waiting", "Waiters", "WaiterTTL",
				"Other", "Answers", "Foreign", "Shares": // package share shares grants of all backends
			default:
				if field.IsExported() {
					all[of.Name()+"."+field.Name] = true
				}
			}
		}
	}
	return all
}

// The matrix of docs/reference/lock-capabilities.md says of each backend what its types can do, and what its
// contract tests say of it.
func TestCapabilitiesAreTheCode(t *testing.T) {
	columns := []string{"capability", "in code", "shown by"}
	set := map[string]map[string]bool{}
	for _, b := range backends() {
		columns = append(columns, b.name)
		set[b.name] = map[string]bool{}
		for _, folder := range b.folders() {
			maps.Copy(set[b.name], parse(t, folder, true).set)
		}
		if b.kit != "" {
			maps.Copy(set[b.name], parse(t, b.kit, false).set)
		}
	}
	said := map[string]bool{}
	for _, row := range read(t, abilities).table(t, columns...) {
		if strings.HasPrefix(row[0], "**") {
			continue
		}
		var code []string
		for _, m := range codeForm.FindAllStringSubmatch(row[1], -1) {
			code = append(code, m[1])
		}
		if len(code) < 1 || len(code) > 2 || len(row) != len(columns) {
			t.Errorf("the row %q names nothing in the code", row)
			continue
		}
		said[strings.Join(code, " ")] = true
		for i, b := range backends() {
			has, known := b.has(code, set[b.name])
			want := map[bool]string{true: "yes", false: "-"}[has]
			if !known || row[3+i] != want {
				t.Errorf("%s, %s: %q, want %q; known: %v", row[0], b.name, row[3+i], want, known)
			}
		}
	}
	for field := range fields() {
		if !said[field] {
			t.Errorf("the matrix says nothing of %s", field)
		}
	}
	for of, rows := range map[string][]string{
		"Locker": {"MultiLocker", "EachLocker", "Inspector", "ForceReleaser", "CounterRaiser"},
		"RW":     {"RWLocker"}, "Semaphore": {"Semaphore", "Resizer"}, "Cond": {"Cond"},
	} {
		for _, capability := range rows {
			if !said[of+" "+capability] {
				t.Errorf("the matrix says nothing of %s as %s", of, capability)
			}
		}
	}
}

// The matrix is complete: each capability, backend and type has its place.
func TestCapabilitiesAreComplete(t *testing.T) {
	for name, of := range parse(t, ".", false).types {
		if _, ok := of.(*ast.InterfaceType); !ok || !ast.IsExported(name) || name == "Locker" || name == "Renewer" {
			continue
		}
		if _, ok := capabilities()[name]; !ok {
			t.Errorf("dlock.%s is in no row", name)
		}
	}
	others := []string{conformanceDir, "driver", "breaker", "otellock", "share", "rediswait", "semlock", "permits", "redistokens"} // no backends; the textbook has no lease
	folders, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		name := folder.Name()
		if !folder.IsDir() || slices.Contains(others, name) {
			continue
		}
		at := slices.IndexFunc(backends(), func(b backend) bool { return slices.Contains(b.folders(), name) })
		if at < 0 {
			t.Errorf("%s is in no column", name)
			continue
		}
		for of, methods := range parse(t, name, false).methods {
			taken := slices.Contains(methods, "Acquire") || slices.Contains(methods, "Wait")
			if b := backends()[at]; ast.IsExported(of) && taken && b.typed(of) == nil {
				t.Errorf("%s.%s is not looked at", name, of)
			}
		}
	}
}
