package orderpath_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	module = "example.com/shop/"
	root   = "../../.."

	// commandsFile is on no path: the test itself adds it to the program.
	commandsFile = "cmd/shop/counters.go"
)

// function is a function or method, or a variable with functions.
type function struct {
	file, name  string
	first, last int
	receives    string // its receiver and parameters: types, separated by blanks
}

func (f function) lines() int { return f.last - f.first + 1 }

func (f function) generated() bool { return strings.HasSuffix(f.file, ".gen.go") }

// sources are the files of the repository that were read.
type sources struct {
	functions map[string][]function
	lines     map[string]int
	forms     forms
}

func newSources(t *testing.T) *sources {
	t.Helper()
	return &sources{functions: make(map[string][]function), lines: make(map[string]int), forms: readForms(t)}
}

// of returns the function that has a block.
func (s *sources) of(t *testing.T, b block) function {
	t.Helper()
	if s.lines[b.file] == 0 {
		s.read(t, b.file)
	}
	i := slices.IndexFunc(s.functions[b.file], func(f function) bool { return f.first <= b.first && b.last <= f.last })
	if i < 0 {
		t.Fatalf("%s:%d is in no function", b.file, b.first)
	}
	return s.functions[b.file][i]
}

func (s *sources) read(t *testing.T, file string) {
	t.Helper()
	text := readFile(t, filepath.Join(root, file))
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.lines[file] = bytes.Count(text, []byte("\n"))
	for _, d := range parsed.Decls {
		f := function{file: file, name: nameOf(d), first: set.Position(d.Pos()).Line, last: set.Position(d.End()).Line}
		if d, ok := d.(*ast.FuncDecl); ok {
			f.receives = strings.Join(received(path.Dir(file), d), " ")
		}
		s.functions[file] = append(s.functions[file], f)
	}
}

// nameOf returns the name of a declaration, with its receiver.
func nameOf(d ast.Decl) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return d.Name.Name
		}
		receiver := ""
		ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && receiver == "" {
				receiver = id.Name
			}
			return receiver == ""
		})
		return receiver + "." + d.Name.Name
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok {
				return v.Names[0].Name
			}
		}
	}
	return ""
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// functionsOf returns the functions that have the blocks, by file and line.
func (s *sources) functionsOf(t *testing.T, blocks window) []function {
	t.Helper()
	all := make(map[function]bool)
	for b := range blocks {
		all[s.of(t, b)] = true
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b function) int {
		if a.file != b.file {
			return strings.Compare(a.file, b.file)
		}
		return a.first - b.first
	})
}

// figures says how long a path is. Those of generated code are apart.
type figures struct {
	packages, files, fileLines         int
	functions, functionLines, executed int
	generated, generatedLines          int
	forms                              int
	entered                            entries
}

// figuresOf measures a path.
func (s *sources) figuresOf(t *testing.T, blocks window) (sum figures) {
	t.Helper()
	packages, files, forms := make(map[string]bool), make(map[string]bool), make(map[string]bool)
	for _, f := range s.functionsOf(t, blocks) {
		if f.generated() {
			sum.generated++
			sum.generatedLines += f.lines()
			continue
		}
		packages[path.Dir(f.file)], files[f.file] = true, true
		sum.functions++
		sum.functionLines += f.lines()
		for name := range strings.FieldsSeq(f.receives) {
			if s.forms[name] {
				forms[name] = true
			}
		}
	}
	for f := range files {
		sum.fileLines += s.lines[f]
	}
	sum.packages, sum.files, sum.forms = len(packages), len(files), len(forms)
	type line struct {
		file string
		n    int
	}
	executed := make(map[line]bool)
	for b := range blocks {
		for n := b.first; n <= b.last && files[b.file]; n++ {
			executed[line{b.file, n}] = true
		}
	}
	sum.executed = len(executed)
	return sum
}

// list returns the names of functions, a file per line.
func list(functions []function) string {
	var text strings.Builder
	for i, f := range functions {
		if i == 0 || functions[i-1].file != f.file {
			text.WriteString("\n  " + f.file + ":")
		}
		text.WriteString(" " + f.name)
	}
	return text.String()
}
