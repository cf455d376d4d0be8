package blackbox_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
)

// hostile are texts that have done harm elsewhere.
var hostile = []string{
	"' OR '1'='1", "'; DROP TABLE orders; --", `" OR ""="`, "1 UNION ALL VALUES(1)", `\'; --`, "%27%20OR%201=1", "admin'/*",
	"../../etc/passwd", `..\..\win.ini`, "%2e%2e%2f", "/etc/passwd\x00.png", "<script>alert(1)</script>", "${jndi:ldap://x}", "{{7*7}}", "%s%s%n",
	"a\nb", "a\r\nX-Admin: 1", "\u202eabc", "ａｄｍｉｎ", "é", "\U0001F600", " ", "a b", "null ", strings.Repeat("A", 5000),
}

// mutants calls emit with variants of good, which the schema allows. The schema allows none of the variants. The name
// of each says what is wrong with it.
func mutants(tb testing.TB, schema *openapi3.Schema, good string, emit func(name, body string)) {
	tb.Helper()
	var value any
	if err := json.Unmarshal([]byte(good), &value); err != nil {
		tb.Fatal(err)
	}
	mutateValue(schema, value, "#", func(raw string) string { return raw }, emit)
	for name, body := range map[string]string{
		"nothing": "", "blank": " \t\r\n", "cut off": good[:len(good)-1], "trailing byte": good + "x", "trailing NUL": good + "\x00", "twice": good + good,
		"in an array": "[" + good + "]", "as a string": quoted(good), "byte order mark": "\ufeff" + good, "UTF-16": "\xff\xfe{\x00}\x00",
		"deep": strings.Repeat(`{"a":`, 12_000) + "1" + strings.Repeat("}", 12_000), "deep array": strings.Repeat("[", 32_000) + strings.Repeat("]", 32_000),
		"deeper than may be read": strings.Repeat("[", 100_000), "deep unclosed": strings.Repeat(`{"a":[`, 9_000),
		"too large": good + strings.Repeat(" ", 64<<10), "large text": `{"a":"` + strings.Repeat("a", 60<<10) + `"}`, "many members": manyMembers(5000),
		"comment": good + "/**/", "form": "a=b&c=d", "XML": "<a/>", "YAML": "a: b", "prototype": `{"__proto__":{"admin":true}}`,
	} {
		emit(name, body)
	}
}

// mutateValue emits bodies in which the value at a place is wrong. put returns the whole
// body with other text in this place.
func mutateValue(schema *openapi3.Schema, value any, at string, put func(raw string) string, emit func(name, body string)) {
	raws := []string{"null", "true", "false", "1.5", "1e2", "-1", "1e400", "-1e400", "9223372036854775808", "-9223372036854775809", strings.Repeat("9", 400), `"1"`, `""`, "[]", "{}", "[null]", `{"a":1}`, "NaN", "Infinity", "0x10", "01", "+1", "1.", `"\u0000"`, `"\ud800"`, "\"\xff\"", "\"\xc0\xaf\"", "\"a\x00\"", "'a'", "undefined"}
	for _, text := range hostile {
		raws = append(raws, quoted(text))
	}
	if schema.Min != nil {
		raws = append(raws, fmt.Sprint(int64(*schema.Min)-1))
	}
	if schema.Max != nil {
		raws = append(raws, fmt.Sprint(int64(*schema.Max)+1))
	}
	if schema.MaxLength != nil {
		raws = append(raws, quoted(strings.Repeat("a", int(*schema.MaxLength)+1)))
	}
	for _, raw := range raws {
		var v any
		if json.Unmarshal([]byte(raw), &v) != nil || schema.VisitJSON(v) != nil || !utf8.ValidString(raw) || strings.Contains(raw, "\x00") {
			emit(fmt.Sprintf("%s is %.40s", at, raw), put(raw))
		}
	}
	switch v := value.(type) {
	case map[string]any:
		mutateObject(schema, v, at, put, emit)
	case []any:
		element := func(raw string) string { return put("[" + raw + "]") }
		mutateValue(schema.Items.Value, v[0], at+"/0", element, emit)
		one := marshalled(v[0])
		emit(at+" has too many", put("["+strings.Repeat(one+",", int(*schema.MaxItems))+one+"]"))
		emit(at+" ends with a comma", put("["+one+",]"))
	}
}

// mutateObject emits bodies in which the members of an object are wrong.
func mutateObject(schema *openapi3.Schema, object map[string]any, at string, put func(raw string) string, emit func(name, body string)) {
	names := slices.Sorted(maps.Keys(object))
	// with returns the object with other text for one member, without it if there is none, and
	// with more text after the last one.
	with := func(name, raw, more string) string {
		var members []string
		for _, n := range names {
			switch {
			case n != name:
				members = append(members, quoted(n)+":"+marshalled(object[n]))
			case raw != "":
				members = append(members, quoted(n)+":"+raw)
			}
		}
		if more != "" {
			members = append(members, more)
		}
		return put("{" + strings.Join(members, ",") + "}")
	}
	for _, name := range names {
		same := marshalled(object[name])
		mutateValue(schema.Properties[name].Value, object[name], at+"/"+name, func(raw string) string { return with(name, raw, "") }, emit)
		emit(at+"/"+name+" is missing", with(name, "", ""))
		emit(at+"/"+name+" is given twice", with("", "", quoted(name)+":"+same))
		emit(at+"/"+name+" is given twice, escaped", with("", "", fmt.Sprintf(`"\u%04x%s":%s`, name[0], name[1:], same)))
		emit(at+"/"+name+" is in upper case", with(name, "", quoted(strings.ToUpper(name))+":"+same))
		emit(at+"/"+name+" is in both cases", with("", "", quoted(strings.ToUpper(name))+":"+same))
	}
	for _, name := range []string{"id", "status", "price", "expires_at", "version", "reserved", "owner", "admin", "", "a.b", "__proto__", hostile[1], strings.Repeat("m", 300)} {
		emit(fmt.Sprintf("%s has %.40s", at, quoted(name)), with("", "", quoted(name)+":1"))
	}
}

func marshalled(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func quoted(s string) string { return marshalled(s) }
