package lab

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// templates are the files of a new lab: a script that runs, and its texts.
//
//go:embed template
var templates embed.FS

// ErrName says that a new lab cannot have its name.
var ErrName = errors.New("no name for a new lab")

var nameForm = regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)

// Scaffold writes the files of a new lab below the root of the repository, and adds it to [All]. The lab runs as it is. It returns
// the paths of what it has written. Errors: [ErrName], and those of the files. After an error, nothing is overwritten.
func Scaffold(root, name string) (written []string, err error) {
	if _, err := Find(name); err == nil || !nameForm.MatchString(name) {
		return nil, fmt.Errorf("%w: %q exists, or is not of the form two-words", ErrName, name)
	}
	list := filepath.Join(root, "internal", "show", "lab", "lab.go")
	text, err := os.ReadFile(list) //nolint:gosec // of the repository in which the command runs
	if err != nil {
		return nil, fmt.Errorf("lab new works at the root of the repository: %w", err)
	}
	file, goName := strings.ReplaceAll(name, "-", "_")+"_lab", "" // a name that ends in _test or _linux is no file of every build
	for word := range strings.SplitSeq(name, "-") {
		goName += strings.ToUpper(word[:1]) + word[1:]
	}
	const end = "\t}\n\tfor i := range all {"
	before, after, ok := strings.Cut(string(text), end)
	if !ok {
		return nil, fmt.Errorf("%s has no list of labs", list)
	}
	l := Lab{Number: strings.Count(before, "{Name: ") + 1, Name: name}
	fill := strings.NewReplacer("GONAME", goName, "NAME", name, "FILE", file)
	for _, f := range []struct{ template, path string }{
		{"lab.go.tmpl", file + ".go"}, {"lab.md.tmpl", "texts/" + l.File() + ".md"}, {"lab.zh.md.tmpl", "texts/" + l.File() + ".zh.md"},
	} {
		content, err := templates.ReadFile("template/" + f.template)
		if err != nil {
			return written, err
		}
		path := filepath.Join(filepath.Dir(list), f.path)
		if err := create(path, fill.Replace(string(content))); err != nil {
			return written, err
		}
		written = append(written, path)
	}
	entry := fmt.Sprintf("\t\t{Name: %q, Script: run%s, worker: orderWorker},\n", name, goName)
	return append(written, list), os.WriteFile(list, []byte(before+entry+end+after), 0o644) //nolint:gosec // for everybody to read
}

// create writes a file that must not exist.
func create(path, text string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // for everybody to read
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
