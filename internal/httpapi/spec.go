package httpapi

import (
	"bytes"
	"context"
	_ "embed" // for specification
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
)

// specification is the source of the generated code and of the validation of
// requests.
//
//go:embed openapi.yaml
var specification []byte

// GetSpecification implements [StrictServerInterface].
func (a *api) GetSpecification(context.Context, GetSpecificationRequestObject) (GetSpecificationResponseObject, error) {
	return GetSpecification200ApplicationYamlResponse{
		Body: bytes.NewReader(specification), ContentLength: int64(len(specification)),
	}, nil
}

// rules are the rules of all operations, by method and route
// in the router's notation.
type rules map[string]rule

// rule has the requirements of the specification for requests of one operation.
type rule struct {
	admin  bool // the operation is on the listener of NewAdmin
	access access
	params openapi3.Parameters
	key    bool             // the operation takes an Idempotency-Key
	prefer bool             // the operation takes Prefer
	body   *openapi3.Schema // nil: the operation takes no body
	stream bool             // the response is an event stream
}

// accessOf returns the access to an operation with these alternative requirements.
func accessOf(ways openapi3.SecurityRequirements) access {
	if len(ways) == 0 {
		return forAll
	}
	for _, one := range ways {
		if _, ok := one["customer"]; ok {
			return forCustomers
		}
	}
	return forAdmins
}

// rulesOf returns the rules of the embedded specification, which is parsed once.
var rulesOf = sync.OnceValues(loadRules)

// loadRules parses the embedded specification.
func loadRules() (rules, error) {
	doc, err := openapi3.NewLoader().LoadFromData(specification)
	if err != nil {
		return nil, fmt.Errorf("read the embedded specification: %w", err)
	}
	route := strings.NewReplacer("{", ":", "}", "")
	all := make(rules)
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			r := rule{admin: len(item.Servers) > 0, params: slices.Concat(op.Parameters, item.Parameters)}
			r.key = r.params.GetByInAndName(openapi3.ParameterInHeader, keyHeader) != nil
			r.prefer = r.params.GetByInAndName(openapi3.ParameterInHeader, "Prefer") != nil
			r.access = accessOf(doc.Security)
			if op.Security != nil {
				r.access = accessOf(*op.Security)
			}
			if ok := op.Responses.Value("200"); ok != nil {
				r.stream = ok.Value.Content[eventStream] != nil
			}
			if op.RequestBody != nil {
				r.body = op.RequestBody.Value.Content["application/json"].Schema.Value
			}
			all[method+" "+route.Replace(path)] = r
		}
	}
	return all, nil
}
