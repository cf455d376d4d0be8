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

// specification is the contract that the generated code and the checks of
// requests are both made from.
//
//go:embed openapi.yaml
var specification []byte

// GetSpecification implements [StrictServerInterface].
func (a *api) GetSpecification(context.Context, GetSpecificationRequestObject) (GetSpecificationResponseObject, error) {
	return GetSpecification200ApplicationYamlResponse{
		Body: bytes.NewReader(specification), ContentLength: int64(len(specification)),
	}, nil
}

// rules are what the specification asks of the requests, by method and route
// in the router's notation.
type rules map[string]rule

// rule is what the specification asks of the requests for one operation.
type rule struct {
	tag    string // what the operation belongs to
	access access
	params openapi3.Parameters
	body   *openapi3.Schema // nil: the operation takes no body
	stream bool             // the answer has no end
}

// has reports whether the operation has a parameter in the header with the name.
func (r rule) has(header string) bool {
	return r.params.GetByInAndName(openapi3.ParameterInHeader, header) != nil
}

// accessOf returns who may use an operation with these requirements, of which one has to be met.
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

// rulesOf returns the rules of the embedded specification, which is read once.
var rulesOf = sync.OnceValues(loadRules)

// loadRules reads the embedded specification.
func loadRules() (rules, error) {
	doc, err := openapi3.NewLoader().LoadFromData(specification)
	if err != nil {
		return nil, fmt.Errorf("read the embedded specification: %w", err)
	}
	route := strings.NewReplacer("{", ":", "}", "")
	all := make(rules)
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			r := rule{tag: strings.Join(op.Tags, " "), params: slices.Concat(op.Parameters, item.Parameters)}
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
