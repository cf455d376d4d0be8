package httpapi

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gin-gonic/gin"
)

const (
	maxBody       = 64 << 10
	maxViolations = 10
)

// check refuses a request that violates the specification. It runs before
// the generated code binds the request, because that code accepts unknown and duplicate
// fields, bytes after the object, and any Content-Type.
func (r rules) check(c *gin.Context) error {
	rule, ok := r[c.Request.Method+" "+c.FullPath()]
	if !ok {
		return errors.New("the route is not in the specification")
	}
	rule.joinLists(c.Request.Header)
	if err := cmp.Or(rule.checkKey(c), rule.checkPath(c), rule.checkQuery(c.Request.URL.RawQuery)); err != nil {
		return err
	}
	if rule.body == nil {
		return checkNoBody(c.Request)
	}
	data, err := readBody(c.Writer, c.Request)
	if err != nil {
		return err
	}
	value, err := parse(data)
	if err != nil {
		return err
	}
	if err := rule.body.VisitJSON(value, openapi3.MultiErrors(), openapi3.VisitAsRequest()); err != nil {
		return invalid(violations(err, nil)...)
	}
	stateOf(c.Request.Context()).payload = value
	c.Request.Body = checkedBody{io.NopCloser(bytes.NewReader(data)), value}
	return nil
}

// checkedBody is a body with its parsed value, so that the generated code does not parse it again.
type checkedBody struct {
	io.ReadCloser

	value any
}

// ValidatedValue returns the parsed body to the generated code.
func (b checkedBody) ValidatedValue() any { return b.value }

// joinLists joins the lines of list headers, as the generated code expects.
func (r rule) joinLists(h http.Header) {
	for _, p := range r.params {
		name := p.Value.Name
		if p.Value.In != openapi3.ParameterInHeader || name == keyHeader {
			continue
		}
		if list := strings.Join(h.Values(name), ", "); list != "" {
			h.Set(name, list)
		} else {
			h.Del(name)
		}
	}
}

// checkKey reads the idempotency key if the operation takes one.
func (r rule) checkKey(c *gin.Context) (err error) {
	if r.has(keyHeader) {
		stateOf(c.Request.Context()).key, err = idempotencyKey(c.Request.Header)
	}
	return err
}

func (r rule) checkPath(c *gin.Context) error {
	for _, p := range r.params {
		if p.Value.In == openapi3.ParameterInPath && p.Value.Schema.Value.VisitJSON(c.Param(p.Value.Name)) != nil {
			return refuse(TypeMalformedRequest, "The path has a malformed "+p.Value.Name+". Want "+allowedValues(p.Value.Schema.Value)+".")
		}
	}
	return nil
}

func (r rule) checkQuery(raw string) error {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return refuse(TypeMalformedRequest, "The query cannot be parsed.")
	}
	for name, values := range query {
		p := r.params.GetByInAndName(openapi3.ParameterInQuery, name)
		if p == nil {
			return refuse(TypeMalformedRequest, "There is no query parameter "+shorten(strconv.Quote(name))+".")
		}
		if len(values) != 1 {
			return refuse(TypeMalformedRequest, "The query parameter "+name+" is given more than once.")
		}
		if p.Schema.Value.VisitJSON(queryValue(p.Schema.Value, values[0])) != nil {
			return refuse(TypeMalformedRequest, "The query parameter "+name+" is malformed or out of bounds. Want "+allowedValues(p.Schema.Value)+".")
		}
	}
	return nil
}

// allowedValues describes the values of a parameter that schema allows.
func allowedValues(schema *openapi3.Schema) string {
	switch {
	case schema.Min != nil && schema.Max != nil:
		return fmt.Sprintf("an integer from %.0f to %.0f", *schema.Min, *schema.Max)
	case len(schema.Enum) > 0:
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(schema.Enum), " ", ", "), "[]")
	case schema.Description != "":
		return strings.TrimSuffix(strings.TrimSpace(schema.Description), ".")
	default:
		return "a text that matches " + schema.Pattern
	}
}

// queryValue converts s to the type of schema. An integer in an unusual
// form stays a string, which the validation refuses.
func queryValue(schema *openapi3.Schema, s string) any {
	if n, err := strconv.Atoi(s); err == nil && schema.Type.Is(openapi3.TypeInteger) && strconv.Itoa(n) == s {
		return float64(n)
	}
	return s
}

func checkNoBody(r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	if n, err := io.ReadFull(r.Body, make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return refuse(TypeMalformedRequest, "This operation takes no body.")
	}
	return nil
}

// readBody reads the body. It must be JSON and at most maxBody bytes.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if !isJSON(r.Header) {
		return nil, refuse(TypeUnsupportedMediaType, "The body must be sent as application/json, in UTF-8 and without Content-Encoding.")
	}
	const tooLarge = "The body is larger than 64 KiB."
	if r.ContentLength > maxBody {
		return nil, refuse(TypeBodyTooLarge, tooLarge)
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		return data, nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, refuse(TypeBodyTooLarge, tooLarge)
	}
	return nil, refuse(TypeMalformedRequest, "The body could not be read.")
}

func isJSON(h http.Header) bool {
	types := h.Values("Content-Type")
	if len(types) != 1 || len(h.Values("Content-Encoding")) > 0 {
		return false
	}
	if types[0] == "application/json" {
		return true
	}
	mediaType, params, err := mime.ParseMediaType(types[0])
	if err != nil || mediaType != "application/json" {
		return false
	}
	charset, ok := params["charset"]
	if ok {
		delete(params, "charset")
	}
	return len(params) == 0 && (!ok || strings.EqualFold(charset, "utf-8"))
}

// violations appends the first places at which a body violates its schema, each
// place once.
func violations(err error, found []Violation) []Violation {
	if len(found) == maxViolations {
		return found
	}
	if all, ok := errors.AsType[openapi3.MultiError](err); ok {
		for _, e := range all {
			found = violations(e, found)
		}
		return found
	}
	v := Violation{Pointer: "#", Detail: "does not have the required form"}
	if e, ok := errors.AsType[*openapi3.SchemaError](err); ok {
		v = Violation{Pointer: pointer(e.JSONPointer()), Detail: shorten(e.Reason)}
		if e.SchemaField == "pattern" {
			v.Detail = "must be: " + e.Schema.Description
		}
	}
	known := slices.ContainsFunc(found, func(f Violation) bool { return f.Pointer == v.Pointer })
	if known && v.Pointer != "#" {
		return found
	}
	return append(found, v)
}
