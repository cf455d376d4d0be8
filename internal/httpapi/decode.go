package httpapi

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
)

// maxDepth is the deepest nesting of a body. The specification needs three.
const maxDepth = 32

// parse reads data as exactly one JSON object, the way the specification wants
// it and encoding/json does not: it refuses members given twice, bytes behind
// the object, text that is not Unicode, NUL, and numbers that are not plain
// integers. Numbers become float64, as the validation of schemas expects.
func parse(data []byte) (any, error) {
	if !json.Valid(data) || !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		return nil, refuse(TypeMalformedRequest, "The body is not exactly one JSON object.")
	}
	p := parser{tokens: json.NewDecoder(bytes.NewReader(data))}
	p.tokens.UseNumber()
	return p.value()
}

// parser walks the tokens of a text that is known to be JSON.
type parser struct {
	tokens *json.Decoder
	path   []string // of the value that is being read
}

func (p *parser) value() (any, error) {
	if len(p.path) > maxDepth {
		return nil, refuse(TypeMalformedRequest, "The body is nested more than "+strconv.Itoa(maxDepth)+" levels deep.")
	}
	token, err := p.tokens.Token()
	if err != nil {
		return nil, refuse(TypeMalformedRequest, "The body is not exactly one JSON object.")
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return p.object()
		}
		return p.array()
	case json.Number:
		return p.number(t.String())
	case string:
		return p.text(t)
	}
	return token, nil // true, false, null
}

func (p *parser) object() (any, error) {
	members := make(map[string]any)
	for p.tokens.More() {
		token, err := p.tokens.Token()
		if err != nil {
			return nil, refuse(TypeMalformedRequest, "The body is not exactly one JSON object.")
		}
		name, _ := token.(string) // the name of a member is always a string
		if _, err := p.text(name); err != nil {
			return nil, err
		}
		if _, twice := members[name]; twice {
			return nil, refuse(TypeMalformedRequest, "The member "+shorten(strconv.Quote(name))+" is given twice.")
		}
		if members[name], err = p.child(name); err != nil {
			return nil, err
		}
	}
	_, err := p.tokens.Token() // the closing brace
	return members, err
}

func (p *parser) array() (any, error) {
	elements := []any{}
	for p.tokens.More() {
		e, err := p.child(strconv.Itoa(len(elements)))
		if err != nil {
			return nil, err
		}
		elements = append(elements, e)
	}
	_, err := p.tokens.Token() // the closing bracket
	return elements, err
}

func (p *parser) child(name string) (any, error) {
	p.path = append(p.path, name)
	v, err := p.value()
	p.path = p.path[:len(p.path)-1]
	return v, err
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

// text refuses U+FFFD, which the decoder puts in place of bytes that are not
// UTF-8 and of escapes that are no character, and NUL, which some databases and
// C libraries end a text at.
func (p *parser) text(s string) (any, error) {
	if strings.ContainsAny(s, "\x00\uFFFD") {
		return nil, refuse(TypeMalformedRequest, "A text is not UTF-8, or contains NUL or an escape that is not a character.")
	}
	return s, nil
}

// pointer returns path as a JSON pointer (RFC 6901) in a URI fragment.
func pointer(path []string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, name := range path {
		b.WriteString("/" + escape.Replace(name))
	}
	return "#" + shorten((&url.URL{Fragment: b.String()}).EscapedFragment())
}

func invalid(violations ...Violation) *refusal {
	r := refuse(TypeInvalidRequest, "The body breaks a rule of the specification.")
	r.Errors = violations
	return r
}
