package httpapi

import (
	"net/http"
	"regexp"
	"strings"

	"example.com/shop/internal/idempotency"
)

var (
	// keyForm matches a key of printable ASCII characters. In quotes it is a string of structured fields (RFC 9651)
	// without parameters. Most clients send no quotes. Then the key has no space, comma, quote or backslash, because
	// a proxy may have joined two keys.
	keyForm = regexp.MustCompile(`^(?:"((?:[ !#-\[\]-~]|\\["\\])+)"|([!#-+\--\[\]-~]+))$`)

	unescapeKey = strings.NewReplacer(`\"`, `"`, `\\`, `\`)
)

// idempotencyKey returns the key of a request, or an empty string.
func idempotencyKey(h http.Header) (string, error) {
	fields := h.Values(keyHeader)
	if len(fields) == 0 {
		return "", nil
	}
	if form := keyForm.FindStringSubmatch(fields[0]); form != nil && len(fields) == 1 {
		if key := unescapeKey.Replace(form[1]) + form[2]; len(key) <= idempotency.MaxKey {
			return key, nil
		}
	}
	return "", refuse(TypeMalformedRequest, keyHeader+" must be one key of 1 to 255 printable ASCII characters, in quotes or without.")
}
