package httpapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// An accepted text has the value that encoding/json reads. A refused text is no object, or has a fault that
// encoding/json accepts.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		`{}`, ` { "a" : [ 1 , -2 , true , false , null ] } `, `{"a":{"b":[{"c":"d"}]},"e":"é\n\"\\\/A😀"}`,
		`{"a":1,"a":2}`, `{"a":1.5}`, `{"a":"\u0000"}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}", `{"a":9223372036854775808}`,
		`{"":0}`, `{"a":[]}`, `{"a":[[],{}]}`, `{"\"":"\\"}`, `[]`, `{"a":-0}`, `{"a":"}"}`, "{\"a\":\"\t\"}", `{}{}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		value, err := parse(data)
		var want map[string]any
		if wrong := json.Unmarshal(data, &want); wrong != nil || want == nil {
			if err == nil {
				t.Fatalf("%q is accepted, though it is no object: %v", data, wrong)
			}
			return
		}
		if err == nil && !reflect.DeepEqual(value, want) {
			t.Errorf("%q reads as %v, want %v", data, value, want)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	data := []byte(`{"customer_id":"buyer-12345","items":[{"sku":"lab-redis-cohort-abcdefgh-1","quantity":1}]}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parse(data); err != nil {
			b.Fatal(err)
		}
	}
}

// An object or array has 128 names and values at most.
func TestParseBoundsTheValuesOfAnArray(t *testing.T) {
	t.Parallel()
	for n, ok := range map[int]bool{128: true, 129: false, 130: false} {
		for _, value := range []string{"0", `""`, "[]"} {
			_, err := parse([]byte(`{"a":[` + strings.Repeat(value+",", n-1) + value + `]}`))
			if (err == nil) != ok {
				t.Errorf("%d times %s: %v", n, value, err)
			}
		}
	}
	fields := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"%d":0`, i))
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	if _, err := parse([]byte(fields(64))); err != nil {
		t.Errorf("64 fields: %v", err)
	}
	if _, err := parse([]byte(fields(65))); err == nil {
		t.Error("65 fields are accepted")
	}
}
