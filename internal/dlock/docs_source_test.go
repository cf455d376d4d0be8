package dlock_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// source is the syntax of the Go files of a folder.
type source struct {
	funcs   map[string]function
	named   map[string][]*ast.FuncDecl // functions and methods, by name
	methods map[string][]string        // names, by that of the receiver's type
	types   map[string]ast.Expr
	strings map[string][]string // those in each file
	set     map[string]bool     // fields of conformance harnesses that tests set
}

// function has no receiver.
type function struct {
	file string
	*ast.FuncDecl
}

// parse reads the files of a folder, those of tests if tests says so, else the others.
func parse(t *testing.T, dir string, tests bool) source {
	t.Helper()
	s := source{funcs: map[string]function{}, named: map[string][]*ast.FuncDecl{}, methods: map[string][]string{}, types: map[string]ast.Expr{}, strings: map[string][]string{}}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") != tests {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		s.add(filepath.Base(name), f)
	}
	s.set = s.capabilities()
	return s
}

func (s source) add(file string, f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			s.named[n.Name.Name] = append(s.named[n.Name.Name], n)
			if n.Recv == nil {
				s.funcs[n.Name.Name] = function{file, n}
				break
			}
			of := strings.TrimPrefix(written(n.Recv.List[0].Type), "*")
			s.methods[of] = append(s.methods[of], n.Name.Name)
		case *ast.TypeSpec:
			s.types[n.Name.Name] = n.Type
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				s.strings[file] = append(s.strings[file], text)
			}
		}
		return true
	})
}

// has reports whether any file has the string.
func (s source) has(text string) bool {
	for _, all := range s.strings {
		if slices.Contains(all, text) {
			return true
		}
	}
	return false
}

// fullSize reports whether a test runs at full size only, in all its parts.
func (s source) fullSize(name string) bool {
	f, ok := s.funcs[name]
	if !ok {
		return false
	}
	for _, statement := range f.Body.List {
		e, ok := statement.(*ast.ExprStmt)
		if !ok {
			continue
		}
		call, ok := e.X.(*ast.CallExpr)
		if !ok {
			continue
		}
		called := written(call.Fun)
		if called == "testbedtest.FullSize" || called != name && s.fullSize(called) {
			return true
		}
	}
	return false
}

// testCase is a conformance test and the function that runs it.
type testCase struct{ name, run string }

// cases returns the conformance tests, in their order.
func (s source) cases() (all []testCase) {
	for _, list := range []string{"cases", "eachCases", "exclusiveCases", "sharedCases"} {
		ast.Inspect(s.funcs[list].Body, func(n ast.Node) bool {
			if c, ok := n.(*ast.CompositeLit); ok && len(c.Elts) == 2 {
				if name, err := strconv.Unquote(written(c.Elts[0])); err == nil {
					all = append(all, testCase{name, written(c.Elts[1])})
				}
			}
			return true
		})
	}
	return all
}

// needs returns the fields of the harness without which a case is skipped.
func (s source) needs(name string) (fields []string) {
	cases := s.cases()
	at := slices.IndexFunc(cases, func(c testCase) bool { return c.name == name })
	if at < 0 {
		return nil
	}
	f, ok := s.funcs[cases[at].run]
	if !ok {
		return nil
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if need, ok := n.(*ast.CallExpr); ok && written(need.Fun) == "need" {
			ast.Inspect(need.Args[1], func(n ast.Node) bool {
				if field, ok := n.(*ast.SelectorExpr); ok && written(field.X) == "h" {
					fields = append(fields, "Harness."+field.Sel.Name)
				}
				return true
			})
		}
		return true
	})
	return fields
}

// reaches returns the functions and methods of the package that a function calls, directly or not, and itself.
func (s source) reaches(from string) (all []*ast.FuncDecl) {
	seen := map[string]bool{}
	var visit func(at string)
	visit = func(at string) {
		if seen[at] {
			return
		}
		seen[at] = true
		for _, f := range s.named[at] {
			all = append(all, f)
			ast.Inspect(f, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					visit(lastName(written(call.Fun)))
				}
				return true
			})
		}
	}
	visit(from)
	return all
}

// calls reports whether a function, or one that it reaches, calls a function or method with that name.
func (s source) calls(from, name string) (found bool) {
	for _, f := range s.reaches(from) {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			found = found || ok && lastName(written(call.Fun)) == name
			return !found
		})
	}
	return found
}

// lastName returns the last part of a name such as tr.Load.Run.
func lastName(name string) string { return name[strings.LastIndex(name, ".")+1:] }

// capabilities are the fields of conformance harnesses that tests set.
func (s source) capabilities() map[string]bool {
	set := map[string]bool{}
	for _, f := range s.funcs {
		harnesses := map[string]string{} // variables, and of which type they are
		field := func(of, name string, value ast.Expr) {
			if v := written(value); of != "" && v != "false" && v != "nil" && v != "0" {
				set[of+"."+name] = true
			}
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok {
						field(harness(n.Type), written(kv.Key), kv.Value)
					}
				}
			case *ast.AssignStmt:
				for i := range min(len(n.Lhs), len(n.Rhs)) {
					variable, name, isField := strings.Cut(written(n.Lhs[i]), ".")
					if isField {
						field(harnesses[variable], name, n.Rhs[i])
					} else if of := s.makes(n.Rhs[i]); of != "" {
						harnesses[variable] = of
					}
				}
			}
			return true
		})
	}
	return set
}

// makes returns which harness e is, if it is one.
func (s source) makes(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.CompositeLit:
		return harness(e.Type)
	case *ast.CallExpr:
		if f, ok := s.funcs[written(e.Fun)]; ok && f.Type.Results != nil {
			return harness(f.Type.Results.List[0].Type)
		}
	}
	return ""
}

// harness returns the name of a type if it is a conformance harness.
func harness(of ast.Expr) string {
	name, ok := strings.CutPrefix(written(of), "dlocktest.")
	if !ok || !strings.HasSuffix(name, "Harness") {
		return ""
	}
	return name
}

// written is how simple expressions are written; of others it is empty.
func written(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.BasicLit:
		return e.Value
	case *ast.StarExpr:
		return "*" + written(e.X)
	case *ast.SelectorExpr:
		return written(e.X) + "." + e.Sel.Name
	}
	return ""
}
