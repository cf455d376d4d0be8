package lab

import (
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// texts explain the labs: NN-NAME.md in English, with links, and NN-NAME.zh.md in Chinese. bibliography.md lists what to read.
// runs.zh.txt has in Chinese what runs say.
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

	Read      []Reading   `json:"read"`
	Exercises [3]Exercise `json:"exercises"`
}

// Reading is a work to read: what it claims, and where the lab agrees.
type Reading struct {
	Work

	Claim string `json:"claim"`
}

// Work is an entry of the bibliography.
type Work struct {
	Key     string `json:"key"`
	Author  string `json:"author"`
	Title   string `json:"title"`
	Venue   string `json:"venue"`
	Year    string `json:"year"` // or the version of what changes
	Address string `json:"address"`
}

// String is the work as one line.
func (w Work) String() string {
	return fmt.Sprintf("%s: %s. %s, %s", w.Author, w.Title, w.Venue, w.Year)
}

// Exercise is a question to a reader who has run the lab. Its solution is in docs/labs/solutions.
type Exercise struct {
	Level   string `json:"level"` // easy, medium or hard
	Minutes int    `json:"minutes"`
	Begin   string `json:"begin"` // the command or the file where one begins
	Text    string `json:"text"`
}

// Chinese returns the words of the lab in Chinese.
func (l Lab) Chinese() Words { return wordsOf(sections(l.File() + ".zh.md")) }

var (
	linkForm     = regexp.MustCompile(`\[([^]]+)\]\((?:\.\./)*([^)]+)\)`)
	exerciseForm = regexp.MustCompile("(?m)^\\d\\. \\((\\S+), (\\d+) [^,]+, `?([^`)]+)`?\\) (.*)$")
	readingForm  = regexp.MustCompile(`(?m)^- ([\w-]+): (.*)$`)
	workForm     = regexp.MustCompile(`(?m)^\| ([\w-]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| <([^|]+)> \|$`)
)

// read fills in what the text of the lab says.
func (l *Lab) read() {
	parts := sections(l.File() + ".md")
	l.Words = wordsOf(parts)
	for _, link := range linkForm.FindAllStringSubmatch(parts["Links"], -1) {
		l.Links = append(l.Links, Link{link[1], link[2]})
	}
}

func wordsOf(parts map[string]string) Words {
	plain := func(heading string) string { return strings.Join(strings.Fields(parts[heading]), " ") }
	w := Words{Title: plain(""), Question: plain("Question"), Expect: plain("Expect"), Why: plain("Why"), Cure: plain("Cure")}
	for _, reading := range readingForm.FindAllStringSubmatch(parts["Read"], -1) {
		i := slices.IndexFunc(bibliography, func(w Work) bool { return w.Key == reading[1] })
		if i < 0 {
			panic("lab: not in the bibliography: " + reading[1]) // the texts are part of the program
		}
		w.Read = append(w.Read, Reading{bibliography[i], reading[2]})
	}
	for i, e := range exerciseForm.FindAllStringSubmatch(parts["Exercises"], len(w.Exercises)) {
		minutes, _ := strconv.Atoi(e[2]) // the form has digits
		w.Exercises[i] = Exercise{e[1], minutes, e[3], e[4]}
	}
	return w
}

var bibliography = readBibliography()

func readBibliography() (all []Work) {
	for _, w := range workForm.FindAllStringSubmatch(textOf("bibliography.md"), -1) {
		all = append(all, Work{w[1], w[2], w[3], w[4], w[5], w[6]})
	}
	return all
}

// Bibliography returns all works that labs cite, in the order of their keys.
func Bibliography() []Work { return slices.Clone(bibliography) }

func textOf(file string) string {
	text, err := texts.ReadFile("texts/" + file)
	if err != nil {
		panic(fmt.Sprintf("lab: %v", err)) // the file is part of the program
	}
	return string(text)
}

// sections returns the parts of a text by their headings. The title has none.
func sections(file string) map[string]string {
	parts := make(map[string]string)
	for i, part := range strings.Split(strings.TrimPrefix(textOf(file), "# "), "\n## ") {
		heading, body, _ := strings.Cut(part, "\n")
		if i == 0 {
			heading, body = "", part
		}
		parts[heading] = body
	}
	return parts
}
