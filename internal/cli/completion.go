package cli

import (
	"context"
	"embed"
	"io"
	"strings"
	"text/template"
)

// Each script has the whole command tree in it, so that completion starts no process.
//
//go:embed completion.bash.tmpl completion.zsh.tmpl completion.fish.tmpl
var completionFiles embed.FS

// completionScripts reads the templates. They have functions to quote text for a shell.
func completionScripts() (*template.Template, error) {
	return template.New("").Funcs(template.FuncMap{
		"words": func(words []string) string { return strings.Join(words, " ") },
		"quote": func(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" },
		// A description follows a colon in zsh, and a second one would end it.
		"plain": func(text string) string {
			return strings.NewReplacer("'", "", ":", " -", "\\", "", "\n", " ").Replace(text)
		},
		"below": func(name string) string { return strings.TrimPrefix(strings.TrimPrefix(name, "shop"), " ") },
	}).ParseFS(completionFiles, "completion.*.tmpl")
}

// Completion returns the command that prints a script for a shell, with the commands below root.
func Completion(root *Command) Command {
	shells := []string{"bash", "zsh", "fish"}
	return Command{
		Name: "completion", Args: "SHELL", Values: shells, Summary: "Print a completion script for bash, zsh or fish",
		Details: "The script knows commands, flags, and the values of flags that take fixed names.",
		Examples: []Example{
			{"In this bash", "source <(shop completion bash)"},
			{"In each zsh: a folder of its $fpath", `shop completion zsh > "${fpath[1]}/_shop"`},
			{"In each fish", "shop completion fish > ~/.config/fish/completions/shop.fish"},
		},
		Define: func(f *Flags) Run {
			return func(_ context.Context, args []string) error { return complete(f.Stdout, root, args[0]) }
		},
	}
}

// complete writes the script for a shell.
func complete(w io.Writer, root *Command, shell string) error {
	scripts, err := completionScripts()
	if err != nil {
		return err
	}
	return scripts.ExecuteTemplate(w, "completion."+shell+".tmpl", root.Pages())
}

// FlagNames returns the flags of the command as a user types them.
func (p Page) FlagNames() []string {
	names := []string{"--help"}
	for _, fl := range p.Flags() {
		names = append(names, "--"+fl.Name)
	}
	return names
}

// Words returns what may follow the command, other than a flag.
func (p Page) Words() []string { return append(p.at.last().names(), p.at.last().Values...) }

// Folder reports whether the value of the flag is a folder.
func (fl *Flag) Folder() bool { return fl.Value == "FOLDER" }
