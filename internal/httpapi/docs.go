package httpapi

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/swaggest/swgui/v5emb"
)

const (
	docsPath     = "/docs"
	problemsPath = docsPath + "/problems"

	// docsPolicy lets the pages below /docs load resources of this service only. Swagger UI
	// draws its icons from data URLs.
	docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

//go:embed docs
var docsFiles embed.FS

// docsPage is a page or a part of a page.
type docsPage struct {
	contentType string
	body        []byte
}

// serveDocs adds Swagger UI, and a page for every problem type at the path that is its name.
func (a *api) serveDocs(engine *gin.Engine) error {
	pages, err := docsPages()
	if err != nil {
		return err
	}
	swagger := v5emb.New("shop", "/api/v1/openapi.yaml", docsPath)
	policy := func(c *gin.Context) {
		c.Header("Content-Security-Policy", docsPolicy)
		c.Header("Referrer-Policy", "no-referrer")
	}
	docs := engine.Group(docsPath, policy)
	for path, page := range pages {
		docs.GET(strings.TrimPrefix(path, docsPath), func(c *gin.Context) { c.Data(http.StatusOK, page.contentType, page.body) })
	}
	for path, t := range renamedProblems {
		docs.GET(strings.TrimPrefix(path, docsPath), func(c *gin.Context) { c.Redirect(http.StatusPermanentRedirect, string(t)) })
	}
	for _, file := range []string{"swagger-ui.css", "swagger-ui-bundle.js", "favicon-16x16.png", "favicon-32x32.png"} {
		docs.GET("/"+file, func(c *gin.Context) {
			c.Header("Cache-Control", "public, max-age=3600") // it is large, and the same for all clients
			swagger.ServeHTTP(c.Writer, c.Request)
		})
	}
	return nil
}

// docsPages returns all pages by path.
func docsPages() (map[string]docsPage, error) {
	texts, err := template.ParseFS(docsFiles, "docs/*.html")
	if err != nil {
		return nil, fmt.Errorf("read the documentation pages: %w", err)
	}
	pages := make(map[string]docsPage)
	add := func(path, name string, data any) error {
		var b bytes.Buffer
		if err := texts.ExecuteTemplate(&b, name, data); err != nil {
			return fmt.Errorf("render the page %s: %w", path, err)
		}
		pages[path] = docsPage{"text/html; charset=utf-8", b.Bytes()}
		return nil
	}
	problems, err := describedProblems()
	if err != nil {
		return nil, err
	}
	for _, p := range problems {
		if err := add(string(p.Type), "problem.html", p); err != nil {
			return nil, err
		}
	}
	if err := add(problemsPath, "problems.html", problems); err != nil {
		return nil, err
	}
	if err := add(docsPath, "index.html", nil); err != nil {
		return nil, err
	}
	for name, contentType := range map[string]string{"init.js": "text/javascript; charset=utf-8", "style.css": "text/css; charset=utf-8"} {
		body, err := docsFiles.ReadFile("docs/" + name)
		if err != nil {
			return nil, err
		}
		pages[docsPath+"/"+name] = docsPage{contentType, body}
	}
	return pages, nil
}

// describedProblem is the content of the page of a problem type.
type describedProblem struct {
	Type            ProblemType
	Status          int
	StatusText      string
	Title           string
	Meaning, Remedy string
	Example         string
	Effect          string
	Advice          advice
}

func describedProblems() ([]describedProblem, error) {
	var all []describedProblem
	for _, table := range []map[ProblemType]problemType{permanentProblems, temporaryProblems} {
		for t, k := range table {
			k.example.Type, k.example.Title, k.example.Status = t, k.title, k.status
			example, err := json.MarshalIndent(k.example, "", "  ")
			if err != nil {
				return nil, err
			}
			all = append(all, describedProblem{
				Type: t, Status: k.status, StatusText: http.StatusText(k.status), Title: k.title,
				Meaning: k.meaning, Remedy: k.remedy, Example: string(example), Effect: effectOf(t), Advice: k.advice,
			})
		}
	}
	slices.SortFunc(all, func(a, b describedProblem) int { return strings.Compare(string(a.Type), string(b.Type)) })
	return all, nil
}
