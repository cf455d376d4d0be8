package httpapi

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// maxDepth is the deepest nesting of a body. The specification needs three levels.
	maxDepth = 32

	// maxValues bounds the values of a body, and so the work of the validation, which checks
	// every value. The specification needs 153.
	maxValues = 256
)

// parse reads data as exactly one JSON object. Unlike encoding/json, it refuses
// duplicate fields, bytes after the object, text that is not Unicode, NUL, and
// numbers that are not plain integers. Numbers become float64 for the
// validation of schemas.
func parse(data []byte) (any, error) {
	if !json.Valid(data) || !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		return nil, refuse(TypeMalformedRequest, "The body is not exactly one JSON object.")
	}
	p := parser{text: data}
	return p.value()
}

// parser parses a text that is valid JSON.
type parser struct {
	text   []byte
	at     int
	values int      // number of values so far
	path   []string // of the current value
}

// next returns the first byte of the next token.
func (p *parser) next() byte {
	for ; ; p.at++ {
		switch c := p.text[p.at]; c {
		case ' ', '\t', '\r', '\n', ',', ':': // json.Valid has checked their places
		default:
			return c
		}
	}
}

func (p *parser) value() (any, error) {
	if len(p.path) > maxDepth {
		return nil, refuse(TypeMalformedRequest, "The body is nested more than "+strconv.Itoa(maxDepth)+" levels deep.")
	}
	switch p.next() {
	case '{':
		return p.object()
	case '[':
		return p.array()
	case '"':
		return p.string()
	case 't':
		p.at += len("true")
		return true, nil
	case 'f':
		p.at += len("false")
		return false, nil
	case 'n':
		p.at += len("null")
		return nil, nil
	}
	from := p.at
	for strings.IndexByte("+-.0123456789Ee", p.text[p.at]) >= 0 {
		p.at++
	}
	return p.number(string(p.text[from:p.at]))
}

func (p *parser) object() (any, error) {
	fields := make(map[string]any)
	p.at++
	for p.next() != '}' {
		name, err := p.string()
		if err != nil {
			return nil, err
		}
		if _, twice := fields[name]; twice {
			return nil, refuse(TypeMalformedRequest, "The field "+shorten(strconv.Quote(name))+" is given twice.")
		}
		if fields[name], err = p.child(name); err != nil {
			return nil, err
		}
	}
	p.at++
	return fields, nil
}

func (p *parser) array() (any, error) {
	elements := []any{}
	p.at++
	for p.next() != ']' {
		e, err := p.child(strconv.Itoa(len(elements)))
		if err != nil {
			return nil, err
		}
		elements = append(elements, e)
	}
	p.at++
	return elements, nil
}

func (p *parser) child(name string) (any, error) {
	if p.values++; p.values > maxValues {
		return nil, invalid(Violation{Pointer: pointer(p.path), Detail: "has more values than any request needs"})
	}
	p.path = append(p.path, name)
	v, err := p.value()
	p.path = p.path[:len(p.path)-1]
	return v, err
}

// string parses a string. It refuses U+FFFD, with which the decoder replaces invalid UTF-8 and
// invalid escapes. It refuses NUL, because some databases and C libraries end a
// text there.
func (p *parser) string() (s string, err error) {
	from, plain := p.at, true
	for p.at++; p.text[p.at] != '"'; p.at++ {
		switch c := p.text[p.at]; {
		case c == '\\':
			plain = false
			p.at++ // the escaped byte may be a quote
		case c >= utf8.RuneSelf:
			plain = false
		}
	}
	p.at++
	if literal := p.text[from:p.at]; plain {
		s = string(literal[1 : len(literal)-1])
	} else if err := json.Unmarshal(literal, &s); err != nil {
		return "", err
	}
	if strings.ContainsAny(s, "\x00\uFFFD") {
		return "", refuse(TypeMalformedRequest, "A text is not UTF-8, or contains NUL or an escape that is not a character.")
	}
	return s, nil
}

// number accepts a plain integer. It refuses 1.0 and 1e2 as probable typing errors.
func (p *parser) number(literal string) (any, error) {
	if strings.ContainsAny(literal, ".eE") {
		return nil, invalid(Violation{Pointer: pointer(p.path), Detail: "must be an integer without fraction or exponent"})
	}
	n, err := strconv.ParseInt(literal, 10, 64)
	if err != nil {
		return nil, invalid(Violation{Pointer: pointer(p.path), Detail: "is far out of bounds"})
	}
	return float64(n), nil
}

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

// pointer returns path as a JSON pointer (RFC 6901) in a URI fragment.
func pointer(path []string) string {
	var b strings.Builder
	for _, name := range path {
		b.WriteString("/" + escapePointer.Replace(name))
	}
	return "#" + shorten((&url.URL{Fragment: b.String()}).EscapedFragment())
}

func invalid(violations ...Violation) *refusal {
	r := refuse(TypeInvalidRequest, "The body violates the specification.")
	r.Errors = violations
	return r
}
