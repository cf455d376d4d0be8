// Package page is the control room: a web page that shows, live, how instances sell the same stock.
//
// The page reads the API of the service and its event stream, like any client. All tabs of a browser share
// these reads (static/reads.js), because it opens six connections to one host. The page loads nothing from other
// hosts, has no build step, and changes nothing. The modules in static/vendor keep their licenses alongside.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"time"
)

// Policy lets the page load resources of its own origin only.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Root is the path of the page's files. The page itself is also served at /.
const Root = "/room/"

//go:embed static
var static embed.FS

// types are the content types of the files by extension, whatever the machine's table of types says.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
}

// Files returns a handler of each file of the page, by path.
func Files() (map[string]http.Handler, error) {
	files := make(map[string]http.Handler)
	err := fs.WalkDir(static, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := static.ReadFile(name)
		if err != nil {
			return err
		}
		kind := types[path.Ext(name)]
		if kind == "" {
			kind = "text/plain; charset=utf-8"
		}
		files[Root+name[len("static/"):]] = file(kind, content)
		return nil
	})
	files["/"] = files[Root+"index.html"]
	return files, err
}

// file serves one file. Browsers ask each time whether their copy is still the current one.
func file(kind string, content []byte) http.Handler {
	tag := fmt.Sprintf("%q", fmt.Sprintf("%x", sha256.Sum256(content)))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", kind)
		h.Set("Content-Security-Policy", Policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", tag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	})
}
