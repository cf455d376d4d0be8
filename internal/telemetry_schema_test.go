package internal_test

import (
	"bytes"
	"fmt"
	"go/format"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/otlptranslator"
	"gopkg.in/yaml.v3"
)

// schema is internal/telemetry/schema.yaml.
type schema struct {
	Spans []struct {
		Name, Match, What    string
		Attributes, Optional []string
	}
	Metrics []struct {
		Section, Package string
		Labels           []string
		List             []metricSchema
	}
}

type metricSchema struct {
	Name, Kind, Unit, What string
	Labels                 []string
	Buckets                []float64
}

func readSchema(t *testing.T) (s schema) {
	t.Helper()
	text, err := os.ReadFile("telemetry/schema.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

// The code and docs/reference/metrics.md have the instruments of the schema. `make gen` writes both.
func TestTelemetrySchema(t *testing.T) {
	t.Parallel()
	s := readSchema(t)
	const page = "../docs/reference/metrics.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{page: s.fill(t, text), "../docs/reference/traces.md": s.traces()}
	maps.Copy(want, s.code(t))
	for file, text := range want {
		if *update {
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if is, err := os.ReadFile(file); err != nil || !bytes.Equal(is, text) {
			t.Errorf("%s is stale: make gen: %v", file, err)
		}
	}
}

// fill returns the page with the tables of all sections, each after a comment with its name.
func (s schema) fill(t *testing.T, page []byte) []byte {
	t.Helper()
	tables := make(map[string][]string)
	for _, g := range s.Metrics {
		for _, m := range g.List {
			name, kind := m.prometheus(t)
			var labels []string
			for _, l := range slices.Concat(m.Labels, g.Labels) {
				labels = append(labels, strings.ReplaceAll(l, ".", "_"))
			}
			tables[g.Section] = append(tables[g.Section], fmt.Sprintf("| `%s` | %s | %s | `%s`, %s | %s |\n",
				name, kind, strings.Join(labels, ", "), m.Name, m.Unit, m.What))
		}
	}
	const head = "| metric | type | labels | name and unit over OTLP | meaning |\n|---|---|---|---|---|\n"
	for section, rows := range tables {
		form := regexp.MustCompile(`(?m)(^<!-- metrics: ` + section + ` -->\n\n)(?:\|.*\n)*`)
		if !form.Match(page) {
			t.Errorf("the page has no comment <!-- metrics: %s -->", section)
		}
		slices.Sort(rows)
		page = form.ReplaceAll(page, []byte("${1}"+head+strings.Join(rows, "")))
	}
	return page
}

// traces returns the page of the spans.
func (s schema) traces() []byte {
	var page bytes.Buffer
	page.WriteString(`# Spans

[schema.yaml](../../internal/telemetry/schema.yaml) has all spans, and ` + "`make gen`" + ` writes this page. A short sale, in which
Redis stops and a receiver refuses webhooks, shows all of them, and no others. [TestSaleExportsItsSchema](../../internal/e2e/telemetry_test.go)

| span | attributes | meaning |
|---|---|---|
`)
	for _, x := range s.Spans {
		fmt.Fprintf(&page, "| `%s` | `%s` | %s |\n", x.Name, strings.Join(slices.Concat(x.Attributes, x.Optional), "`, `"), x.What)
	}
	return page.Bytes()
}

// prometheus returns the name and type that /metrics has.
func (m metricSchema) prometheus(t *testing.T) (name, kind string) {
	t.Helper()
	as := otlptranslator.Metric{Name: m.Name, Unit: m.Unit, Type: otlptranslator.MetricTypeGauge}
	switch {
	case strings.Contains(m.Kind, "UpDown"):
		as.Type = otlptranslator.MetricTypeNonMonotonicCounter
	case strings.HasSuffix(m.Kind, "Counter"):
		kind, as.Type = "counter", otlptranslator.MetricTypeMonotonicCounter
	case strings.HasSuffix(m.Kind, "Histogram"):
		kind, as.Type = "histogram", otlptranslator.MetricTypeHistogram
	}
	if kind == "" {
		kind = "gauge"
	}
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	name, err := namer.Build(as)
	if err != nil {
		t.Error(err)
	}
	return name, kind
}

// code returns schema.gen.go of each package, by path, with a constructor for each instrument.
func (s schema) code(t *testing.T) map[string][]byte {
	t.Helper()
	body := make(map[string]string)
	for _, g := range s.Metrics {
		for _, m := range g.List {
			if g.Package == "" { // a library makes it
				continue
			}
			body[g.Package] += m.constructor()
		}
	}
	files := make(map[string][]byte)
	for dir, text := range body {
		code, err := format.Source([]byte("// Code generated from internal/telemetry/schema.yaml. DO NOT EDIT.\n\npackage " + path.Base(dir) +
			"\n\nimport \"go.opentelemetry.io/otel/metric\"\n" + text))
		if err != nil {
			t.Fatalf("%s: %v\n%s", dir, err, text)
		}
		files[path.Join(dir, "schema.gen.go")] = code
	}
	return files
}

// constructor returns a function that makes the instrument.
func (m metricSchema) constructor() string {
	returns := "metric." + m.Kind
	if number, _, ok := strings.Cut(m.Kind, "Observable"); ok {
		returns = "metric." + number + "Observable"
	}
	options := fmt.Sprintf("metric.WithUnit(%q), metric.WithDescription(%q)", m.Unit, m.What)
	if m.Buckets != nil {
		options += ",\nmetric.WithExplicitBucketBoundaries(" + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(m.Buckets)), ", "), "[]") + ")"
	}
	return fmt.Sprintf("\nfunc new%s(m metric.Meter) (%s, error) {\nreturn m.%s(%q, %s)\n}\n", camel(strings.TrimPrefix(m.Name, "shop.")), returns, m.Kind, m.Name, options)
}

// camel returns a dotted name as a part of a Go identifier.
func camel(name string) (s string) {
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) }) {
		s += strings.ToUpper(word[:1]) + word[1:]
	}
	return s
}

// The code starts each span of the schema that has one name, and no others, and writes no attribute or label that the schema does not have.
func TestNamesInCode(t *testing.T) {
	t.Parallel()
	s := readSchema(t)
	var starts, attributes, want []string
	for _, x := range s.Spans {
		attributes = append(attributes, x.Attributes...)
		if x.Match == "" {
			want = append(want, x.Name)
		}
	}
	for _, g := range s.Metrics {
		attributes = append(attributes, g.Labels...)
		for _, m := range g.List {
			attributes = append(attributes, m.Labels...)
		}
	}
	span, attribute := regexp.MustCompile(`racer\.Start\(.*?"([a-z._]+)"`), regexp.MustCompile(`attribute\.[A-Z]\w+\("([^"]+)"`)
	for file, text := range goSources(t) {
		for _, m := range span.FindAllStringSubmatch(text, -1) {
			starts = append(starts, m[1])
		}
		for _, m := range attribute.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(attributes, m[1]) {
				t.Errorf("%s: the schema has no attribute %s", file, m[1])
			}
		}
	}
	slices.Sort(want)
	slices.Sort(starts)
	if diff := cmp.Diff(want, slices.Compact(starts)); diff != "" {
		t.Errorf("spans (-schema +code):\n%s", diff)
	}
}
