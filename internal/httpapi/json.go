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

	// maxValues bounds the values of a body, and with them the work of the validation, which looks at
	// each of them however many rules were broken before. The specification needs 153.
	maxValues = 256
)

// parse reads data as exactly one JSON object, the way the specification wants
// it and encoding/json does not: it refuses members given twice, bytes behind
// the object, text that is not Unicode, NUL, and numbers that are not plain
// integers. Numbers become float64, as the validation of schemas expects.
func parse(data []byte) (any, error) {
	if !json.Valid(data) || !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		return nil, refuse(TypeMalformedRequest, "The body is not exactly one JSON object.")
	}
	p := parser{text: data}
	return p.value()
}

// parser walks through a text that is known to be JSON.
type parser struct {
	text   []byte
	at     int
	values int      // that were read
	path   []string // of the value that is being read
}

// next returns the byte at which something begins.
func (p *parser) next() byte {
	for ; ; p.at++ {
		switch c := p.text[p.at]; c {
		case ' ', '\t', '\r', '\n', ',', ':': // which stand where they must
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
	members := make(map[string]any)
	p.at++
	for p.next() != '}' {
		name, err := p.string()
		if err != nil {
			return nil, err
		}
		if _, twice := members[name]; twice {
			return nil, refuse(TypeMalformedRequest, "The member "+shorten(strconv.Quote(name))+" is given twice.")
		}
		if members[name], err = p.child(name); err != nil {
			return nil, err
		}
	}
	p.at++
	return members, nil
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

// string refuses U+FFFD, which the decoder puts in place of bytes that are not
// UTF-8 and of escapes that are no character, and NUL, which some databases and
// C libraries end a text at.
func (p *parser) string() (s string, err error) {
	from, plain := p.at, true
	for p.at++; p.text[p.at] != '"'; p.at++ {
		switch c := p.text[p.at]; {
		case c == '\\':
			plain = false
			p.at++ // what is escaped may be a quote
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

// number accepts a plain integer. 1.0 and 1e2 are integers to a mathematician
// and a typing error to a shop.
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
	r := refuse(TypeInvalidRequest, "The body breaks a rule of the specification.")
	r.Errors = violations
	return r
}
