package blackbox_test

import (
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestRequestsAreClosedAndResponsesOpen: a request with an unknown field is refused, and a generated client accepts a
// response with one.
func TestRequestsAreClosedAndResponsesOpen(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromFile("../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[*openapi3.Schema]bool{}
	var check func(where string, schema *openapi3.Schema, closed bool)
	check = func(where string, schema *openapi3.Schema, closed bool) {
		if has := schema.AdditionalProperties.Has; len(schema.Properties) > 0 && (has != nil && !*has) != closed {
			t.Errorf("%s: closed is %v, want %v", where, !closed, closed)
		}
		seen[schema] = true
		for name, p := range schema.Properties {
			check(where+"."+name, p.Value, closed)
		}
		if schema.Items != nil {
			check(where+"[]", schema.Items.Value, closed)
		}
		for _, one := range slices.Concat(schema.OneOf, schema.AllOf) {
			check(where+"|"+one.Ref, one.Value, closed)
		}
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			where := method + " " + path
			if op.RequestBody != nil {
				check(where, op.RequestBody.Value.Content[jsonType].Schema.Value, true)
			}
			for status, response := range op.Responses.Map() {
				for _, media := range response.Value.Content {
					check(where+" "+status, media.Schema.Value, false)
				}
			}
		}
	}
	for name, schema := range doc.Components.Schemas {
		if schema.Value.Type.Is("object") && !seen[schema.Value] {
			t.Errorf("no operation uses the schema %s", name)
		}
	}
}
