package httpapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

var update = flag.Bool("update", false, "write the parts of openapi.yaml that come from the problem table")

const specificationFile = "openapi.yaml"

// TestSpecificationHasTheProblemTable compares the examples of problems and the retry matrix with the problem table.
// `make gen` writes them.
func TestSpecificationHasTheProblemTable(t *testing.T) {
	t.Parallel()
	is, err := os.ReadFile(specificationFile)
	if err != nil {
		t.Fatal(err)
	}
	problems, err := describedProblems()
	if err != nil {
		t.Fatal(err)
	}
	want := replaceBlock(t, is, "  examples: # from the problem table: make gen; a new type begins as {value: {}}\n", "  responses:\n", exampleLines(t, problems))
	want = replaceBlock(t, want, "    |---|---|---|---|---|---|\n", "servers:\n", matrixLines(problems))
	if *update {
		if err := os.WriteFile(specificationFile, want, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(is, want) {
		t.Error("the examples or the retry matrix of openapi.yaml differ from the problem table: make gen")
	}
}

// replaceBlock returns text with lines between the lines begin and end.
func replaceBlock(t *testing.T, text []byte, begin, end, lines string) []byte {
	t.Helper()
	before, rest, ok := bytes.Cut(text, []byte("\n"+strings.TrimSuffix(begin, "\n")))
	_, after, ended := bytes.Cut(rest, []byte("\n"+end))
	if !ok || !ended {
		t.Fatalf("openapi.yaml has no lines %q and %q", begin, end)
	}
	return slices.Concat(before, []byte("\n"+begin+lines+end), after)
}

// exampleName is the name of the schema and of the example of a problem type.
func exampleName(p describedProblem) string {
	return strings.TrimSuffix(problemSchemas()[string(p.Type)], "Problem")
}

// problemSchemas returns the names of the schemas of problems by type.
func problemSchemas() map[string]string {
	names := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?s)\n    (\w+Problem):\n.{1,400}?enum: \[(/docs/problems/[a-z-]+)\]`).FindAllSubmatch(specification, -1) {
		names[string(m[2])] = string(m[1])
	}
	return names
}

// exampleLines returns an example of each problem type that operations have. JSON is YAML.
func exampleLines(t *testing.T, problems []describedProblem) string {
	t.Helper()
	var text strings.Builder
	for _, p := range problems {
		name := exampleName(p)
		if name == "" {
			continue // no operation has 405
		}
		var value bytes.Buffer
		if err := json.Compact(&value, []byte(p.Example)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "    %s:\n      summary: %s\n      value: %s\n", name, p.Title, value.String())
	}
	return text.String()
}

// matrixLines returns the rows of the retry matrix.
func matrixLines(problems []describedProblem) string {
	var text strings.Builder
	for _, p := range problems {
		fmt.Fprintf(&text, "    | [%s](%s) | %d | %s | %s | %s | %s |\n", strings.TrimPrefix(string(p.Type), problemsPath+"/"), p.Type,
			p.Status, p.Effect, p.Advice.AsItIs, p.Advice.Key, p.Advice.When)
	}
	return text.String()
}

// TestAdviceAgreesWithTheResponse: a problem type whose advice names Retry-After has the header, and only such a type. A problem
// with an unknown effect says so in its meaning, and every other one says that nothing happened.
func TestAdviceAgreesWithTheResponse(t *testing.T) {
	t.Parallel()
	none := regexp.MustCompile(`Nothing (happened|was reserved)|(This request did nothing)|was not created`)
	problems, err := describedProblems()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if p.Advice.AsItIs == "" || p.Advice.Key == "" || p.Advice.When == "" {
			t.Errorf("%s has no advice", p.Type)
		}
		if p.Advice.retryAfter != strings.Contains(p.Advice.When, "Retry-After") {
			t.Errorf("%s: Retry-After %v, advice %q", p.Type, p.Advice.retryAfter, p.Advice.When)
		}
		if (p.Effect == "none") != none.MatchString(p.Meaning) {
			t.Errorf("%s: effect %s, meaning %q", p.Type, p.Effect, p.Meaning)
		}
	}
}

// TestEveryResponseHasExamples: a problem response has one example per problem type, and any other response with a body has an
// example too.
func TestEveryResponseHasExamples(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromData(specification)
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			for status, response := range op.Responses.Map() {
				for kind, media := range response.Value.Content {
					where := fmt.Sprint(method, " ", path, " ", status, " ", kind)
					switch {
					case kind == problemJSON:
						checkProblemExamples(t, where, media)
					case media.Example == nil && len(media.Examples) == 0 && media.Schema.Value.Example == nil && kind != "application/yaml":
						t.Errorf("%s has no example", where)
					}
				}
			}
		}
	}
}

// checkProblemExamples compares the examples of a response with its schemas.
func checkProblemExamples(t *testing.T, where string, media *openapi3.MediaType) {
	t.Helper()
	choices := media.Schema.Value.OneOf
	if choices == nil {
		choices = openapi3.SchemaRefs{media.Schema}
	}
	if len(media.Examples) != len(choices) {
		t.Errorf("%s has %d examples for %d types", where, len(media.Examples), len(choices))
	}
	for _, choice := range choices {
		name := strings.TrimSuffix(choice.Ref[strings.LastIndex(choice.Ref, "/")+1:], "Problem")
		example := media.Examples[name]
		if example == nil {
			t.Errorf("%s has no example %s", where, name)
		} else if err := choice.Value.VisitJSON(example.Value.Value); err != nil {
			t.Errorf("%s: %s: %v", where, name, err)
		}
	}
}
