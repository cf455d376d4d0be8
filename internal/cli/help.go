package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// width is the longest line of a help text, in bytes, where words can be wrapped.
const width = 80

// help writes the help of the command that names lead to from a command.
func help(w io.Writer, at path, names []string) error {
	for _, name := range names {
		child, err := at.child(name)
		if err != nil {
			return err
		}
		at = child
	}
	var b bytes.Buffer
	p := page{&b, Page{at}}
	p.write()
	_, err := w.Write(b.Bytes())
	return err
}

// page is the help of a command as text.
type page struct {
	*bytes.Buffer
	Page
}

func (p page) write() {
	c := p.at.last()
	p.paragraph("", c.Summary+".")
	p.WriteString("\nUsage:\n")
	for _, line := range p.Usage() {
		p.WriteString("  " + line + "\n")
	}
	if c.Details != "" {
		p.WriteString("\n")
		p.paragraph("", c.Details)
	}
	p.commands(c)
	p.flags()
	p.variables(c)
	if examples := p.Examples(); len(examples) > 0 {
		p.WriteString("\nExamples:\n")
		for _, e := range examples {
			p.WriteString("  # " + e.Purpose + "\n  " + e.Line + "\n")
		}
	}
	if len(c.Exits) > 0 {
		p.WriteString("\nExit codes:\n")
		for _, e := range c.Exits {
			fmt.Fprintf(p, "  %d  %s\n", e.Code, e.Meaning)
		}
	}
	if len(c.Commands) > 0 {
		fmt.Fprintf(p, "\nRun %s for the flags and examples of a command.\n", strings.Replace(p.at.name()+" COMMAND", "shop", "shop help", 1))
	}
}

func (p page) commands(c *Command) {
	if len(c.Commands) == 0 {
		return
	}
	heads, longest := make([]string, len(c.Commands)), 0
	for i, each := range c.Commands {
		heads[i] = each.Name
		if len(p.at) > 1 { // the list of the root is of names only
			heads[i] = strings.TrimSpace(each.Name + " " + each.Args)
		}
		longest = max(longest, len(heads[i]))
	}
	p.WriteString("\nCommands:\n")
	for i, each := range c.Commands {
		fmt.Fprintf(p, "  %-*s  %s\n", longest, heads[i], each.Summary)
	}
}

func (p page) flags() {
	group := "-"
	for _, fl := range p.Flags() {
		if fl.Group != group {
			group = fl.Group
			heading := "Flags"
			if group != "" {
				heading = group
			}
			p.WriteString("\n" + heading + ":\n")
		}
		fmt.Fprintf(p, "  %s\n", fl.Head())
		text := fl.Sentence()
		if fl.Default != "" {
			text += " Default: " + fl.Default + "."
		}
		if fl.Variable != "" {
			text += " Variable: " + fl.Variable + "."
		}
		p.paragraph("      ", text)
	}
}

func (p page) variables(c *Command) {
	if len(c.Env) == 0 {
		return
	}
	p.WriteString("\nVariables without a flag:\n")
	for _, v := range c.Env {
		p.WriteString("  " + v.Name + "\n")
		p.paragraph("      ", v.Meaning+".")
	}
}

// paragraph writes text in lines of at most width bytes, each after indent.
func (p page) paragraph(indent, text string) {
	line := indent
	for word := range strings.FieldsSeq(text) {
		if len(line) > len(indent) && len(line)+1+len(word) > width {
			p.WriteString(line + "\n")
			line = indent
		}
		if len(line) > len(indent) {
			line += " "
		}
		line += word
	}
	p.WriteString(line + "\n")
}
