package lab

import (
	"embed"
	"fmt"
	"regexp"
	"strings"
)

// texts explain the labs: NN-NAME.md in English, with links and exercises, and NN-NAME.zh.md in Chinese.
//
//go:embed texts
var texts embed.FS

// Words are the texts of a lab that explain it.
type Words struct {
	Title    string `json:"title"`
	Question string `json:"question"`
	Expect   string `json:"expect"` // what happens, before it has been seen
	Why      string `json:"why"`    // the cause of the effect
	Cure     string `json:"cure"`
}

// Chinese returns the words of the lab in Chinese.
func (l Lab) Chinese() Words { return wordsOf(sections(l.File() + ".zh.md")) }

var (
	linkForm     = regexp.MustCompile(`\[([^]]+)\]\((?:\.\./)*([^)]+)\)`)
	exerciseForm = regexp.MustCompile(`(?m)^\d\. (.*)$`)
)

// read fills in what the text of the lab says.
func (l *Lab) read() {
	parts := sections(l.File() + ".md")
	l.Words = wordsOf(parts)
	for _, link := range linkForm.FindAllStringSubmatch(parts["Links"], -1) {
		l.Links = append(l.Links, Link{link[1], link[2]})
	}
	for i, exercise := range exerciseForm.FindAllStringSubmatch(parts["Exercises"], len(l.Exercises)) {
		l.Exercises[i] = exercise[1]
	}
}

func wordsOf(parts map[string]string) Words {
	plain := func(heading string) string { return strings.Join(strings.Fields(parts[heading]), " ") }
	return Words{plain(""), plain("Question"), plain("Expect"), plain("Why"), plain("Cure")}
}

// sections returns the parts of a text by their headings. The title has none.
func sections(file string) map[string]string {
	text, err := texts.ReadFile("texts/" + file)
	if err != nil {
		panic(fmt.Sprintf("lab: %v", err)) // the file is part of the program
	}
	parts := make(map[string]string)
	for i, part := range strings.Split(strings.TrimPrefix(string(text), "# "), "\n## ") {
		heading, body, _ := strings.Cut(part, "\n")
		if i == 0 {
			heading, body = "", part
		}
		parts[heading] = body
	}
	return parts
}
