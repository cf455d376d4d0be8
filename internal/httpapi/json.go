package httpapi

import (
	"errors"
	"net/url"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxDepth is the deepest nesting of a body. The specification needs three levels.
	maxDepth = 32

	// maxTokens bounds the names and values of each object and array of a body, and so the work of the validation,
	// which checks every value. The specification needs 50.
	maxTokens = 128
)

// strict has the checks of a body that the decoder does not make.
var strict = json.WithUnmarshalers(json.UnmarshalFromFunc(checkValue))

// parse reads data as exactly one JSON object. The decoder refuses duplicate fields, bytes after the object, and text
// that is not Unicode. Numbers become float64 for the validation of schemas.
func parse(data []byte) (map[string]any, error) {
	var object map[string]any
	err := json.Unmarshal(data, &object, strict)
	if refused, ok := errors.AsType[*refusal](err); ok {
		return nil, refused
	}
	if wrong, ok := errors.AsType[*jsontext.SyntacticError](err); ok && errors.Is(err, jsontext.ErrDuplicateName) {
		return nil, refuse(TypeMalformedRequest, "The field "+pointer(wrong.JSONPointer)+" is given twice.")
	}
	if err != nil || object == nil {
		return nil, refuse(TypeMalformedRequest, "The body is not exactly one JSON object in UTF-8.")
	}
	return object, nil
}

// checkValue refuses a value that is nested too deep, or whose object or array has too many values. It reads integers,
// and refuses 1.0 and 1e2 as probable typing errors.
func checkValue(d *jsontext.Decoder, value *any) error {
	depth := d.StackDepth()
	if depth > maxDepth {
		return refuse(TypeMalformedRequest, "The body is nested more than "+strconv.Itoa(maxDepth)+" levels deep.")
	}
	if _, tokens := d.StackIndex(depth); tokens >= maxTokens {
		return invalid(Violation{Pointer: pointer(d.StackPointer().Parent()), Detail: "has more values than any request needs"})
	}
	if d.PeekKind() != '0' {
		return json.SkipFunc
	}
	literal, err := d.ReadValue()
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(string(literal), 10, 64)
	if err != nil {
		return invalid(Violation{Pointer: pointer(d.StackPointer()), Detail: "must be an integer without fraction or exponent, within 64 bits"})
	}
	*value = float64(n)
	return nil
}

// pointer returns p in a URI fragment.
func pointer(p jsontext.Pointer) string {
	return "#" + shorten((&url.URL{Fragment: string(p)}).EscapedFragment())
}

func invalid(violations ...Violation) *refusal {
	r := refuse(TypeInvalidRequest, "The body violates the specification.")
	r.Errors = violations
	return r
}
