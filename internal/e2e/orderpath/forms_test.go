package orderpath_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// forms are the types that carry the items of one order, by package and name. A struct is one if it has a slice of items, or
// embeds a form or a pointer to one, or has a form as a field. A path has those that its functions receive, alone or in a slice.
type forms map[string]bool

// readForms reads the packages that an order enters. Generated code, which has the body of the request, does not count.
func readForms(t *testing.T) forms {
	t.Helper()
	structs := make(map[string]*ast.StructType)
	for _, dir := range []string{"internal/httpapi", "internal/order", "internal/sqlstore"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range slices.DeleteFunc(files, func(f string) bool { return !written(f) }) {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if spec, ok := n.(*ast.TypeSpec); ok {
					if s, ok := spec.Type.(*ast.StructType); ok {
						structs[typeName(dir, spec.Name)] = s
					}
				}
				return true
			})
		}
	}
	all := make(forms)
	for found := -1; found < len(all); {
		found = len(all)
		for name, s := range structs {
			dir, _, _ := strings.Cut(name, ".")
			for _, field := range s.Fields.List {
				array, isSlice := field.Type.(*ast.ArrayType)
				_, isPointer := field.Type.(*ast.StarExpr)
				switch {
				case isSlice:
					all[name] = all[name] || typeName(dir, array.Elt) == "order.Item"
				case !isPointer || len(field.Names) == 0:
					all[name] = all[name] || all[typeName(dir, field.Type)]
				}
			}
			if !all[name] {
				delete(all, name)
			}
		}
	}
	return all
}

// written reports whether a file is product code by hand.
func written(file string) bool {
	return !strings.HasSuffix(file, "_test.go") && !strings.HasSuffix(file, ".gen.go")
}

// typeName returns the name of a type, or of that to which it points, with its package; "" for one without a name.
func typeName(dir string, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(dir, e.X)
	case *ast.Ident:
		return path.Base(dir) + "." + e.Name
	case *ast.SelectorExpr:
		if p, ok := e.X.(*ast.Ident); ok {
			return p.Name + "." + e.Sel.Name
		}
	}
	return ""
}

// received returns the types of the receiver and the parameters of a function, of slices those of their elements.
func received(dir string, f *ast.FuncDecl) (names []string) {
	fields := f.Type.Params.List
	if f.Recv != nil {
		fields = append(f.Recv.List, fields...)
	}
	for _, field := range fields {
		e := field.Type
		if array, ok := e.(*ast.ArrayType); ok {
			e = array.Elt
		}
		names = append(names, typeName(dir, e))
	}
	return names
}
