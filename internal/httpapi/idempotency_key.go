package httpapi

import (
	"net/http"
	"strings"

	"example.com/shop/internal/idempotency"
)

const keyHeader = "Idempotency-Key"

// idempotencyKey returns the key of a request, or an empty string. A key is a string of structured fields (RFC 9651)
// in quotes and without parameters. Most clients send no quotes. Then the key must have no space, comma, quote or
// backslash, because a proxy may have joined two keys.
func idempotencyKey(h http.Header) (string, error) {
	fields := h.Values(keyHeader)
	if len(fields) == 0 {
		return "", nil
	}
	key, ok := "", false
	if len(fields) == 1 {
		key, ok = parseKey(fields[0])
	}
	if !ok {
		return "", refuse(TypeMalformedRequest, keyHeader+" must be one key of 1 to 255 printable ASCII characters, in quotes or without.")
	}
	return key, nil
}

func parseKey(field string) (key string, ok bool) {
	if inner, quoted := strings.CutPrefix(field, `"`); quoted {
		key, ok = unquoteKey(inner)
	} else {
		key, ok = field, !strings.ContainsAny(field, " ,\"\\")
	}
	unprintable := strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' })
	if !ok || unprintable || key == "" || len(key) > idempotency.MaxKey {
		return "", false
	}
	return key, true
}

// unquoteKey reads the text after the opening quote. Only quotes and backslashes are escaped.
func unquoteKey(s string) (key string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), i == len(s)-1
		case '\\':
			if i++; i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", false
			}
		}
		b.WriteByte(s[i])
	}
	return "", false
}
