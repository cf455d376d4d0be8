package httpapi

import (
	"encoding/json"
	"reflect"
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
