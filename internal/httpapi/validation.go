package httpapi

import (
	"bytes"
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
	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxBody       = 64 << 10
	maxViolations = 10
)

// check refuses a request that violates the specification. It runs before
// the generated code binds the request, because that code accepts unknown and duplicate
// fields, bytes after the object, and any Content-Type.
func (a *api) check(c *gin.Context) {
	_, in := requestOf(c)
	err := in.rule.checkParams(c)
	if err == nil && in.rule.key {
		in.key, err = idempotencyKey(in.header)
	}
	if err == nil {
		in.payload, err = in.rule.readBody(c)
	}
	if err != nil {
		a.refuse(c, err)
	}
}

func (r rule) checkParams(c *gin.Context) error {
	for _, p := range r.params {
		if p.Value.In == openapi3.ParameterInPath && p.Value.Schema.Value.VisitJSON(c.Param(p.Value.Name)) != nil {
			return refuse(TypeMalformedRequest, "The path has a malformed "+p.Value.Name+". Want "+allowedValues(p.Value.Schema.Value)+".")
		}
	}
	query, err := url.ParseQuery(c.Request.URL.RawQuery)
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

// readBody returns the parsed body, or nil if the operation takes none. The body must be JSON and at most maxBody bytes.
func (r rule) readBody(c *gin.Context) (any, error) {
	if r.body == nil {
		return nil, checkNoBody(c.Request)
	}
	if !isJSON(c.Request.Header) {
		return nil, refuse(TypeUnsupportedMediaType, "The body must be sent as application/json, in UTF-8 and without Content-Encoding.")
	}
	data, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, refuse(TypeBodyTooLarge, "The body is larger than 64 KiB.")
	}
	if err != nil {
		return nil, refuse(TypeMalformedRequest, "The body could not be read.")
	}
	value, err := parse(data)
	if err != nil {
		return nil, err
	}
	if err := r.body.VisitJSON(value, openapi3.MultiErrors(), openapi3.VisitAsRequest()); err != nil {
		return nil, invalid(violations(err, nil)...)
	}
	c.Request.Body = checkedBody{io.NopCloser(bytes.NewReader(data)), value}
	return value, nil
}

// checkedBody is the parsed value of a body, so that the generated code does not parse it again.
type checkedBody struct {
	io.ReadCloser

	value any
}

// ValidatedValue returns the parsed body to the generated code.
func (b checkedBody) ValidatedValue() any { return b.value }

func isJSON(h http.Header) bool {
	mediaType, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if charset, ok := params["charset"]; ok && strings.EqualFold(charset, "utf-8") {
		delete(params, "charset")
	}
	return err == nil && mediaType == "application/json" && len(params) == 0 &&
		len(h.Values("Content-Type")) == 1 && len(h.Values("Content-Encoding")) == 0
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
		var place jsontext.Pointer
		for _, name := range e.JSONPointer() {
			place = place.AppendToken(name)
		}
		v = Violation{Pointer: pointer(place), Detail: shorten(e.Reason)}
		switch e.SchemaField {
		case "pattern":
			rule, _, _ := strings.Cut(e.Schema.Description, "\n")
			v.Detail = "must be: " + rule
		case "maximum":
			v.Detail = fmt.Sprintf("number must be at most %.0f", *e.Schema.Max)
		}
	}
	known := slices.ContainsFunc(found, func(f Violation) bool { return f.Pointer == v.Pointer })
	if known && v.Pointer != "#" {
		return found
	}
	return append(found, v)
}
