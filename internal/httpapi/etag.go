package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
)

// tagged is a response 200 with an ETag that is a hash of its body, or 304 if the
// client has that ETag. A cache may store it and must revalidate each time.
type tagged struct {
	body any
	have []string // If-None-Match
}

// VisitGetOrderResponse implements [GetOrderResponseObject].
func (t tagged) VisitGetOrderResponse(w http.ResponseWriter) error { return t.write(w) }

// VisitGetSKUResponse implements [GetSKUResponseObject].
func (t tagged) VisitGetSKUResponse(w http.ResponseWriter) error { return t.write(w) }

func (t tagged) write(w http.ResponseWriter) error {
	var body bytes.Buffer
	if err := json.NewEncoder(&body).Encode(t.body); err != nil {
		return err
	}
	sum := sha256.Sum256(body.Bytes())
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "private, no-cache")
	if matches(strings.Join(t.have, ","), tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_, err := body.WriteTo(w)
	return err
}

// matches reports whether tag is in list by the weak comparison of If-None-Match (RFC 9110, 13.1.2).
// A malformed element matches nothing.
func matches(list, tag string) bool {
	if strings.Trim(list, " \t") == "*" {
		return true
	}
	for _, one := range splitTags(list) {
		if strings.TrimPrefix(strings.Trim(one, " \t"), "W/") == tag {
			return true
		}
	}
	return false
}

// splitTags splits a list of tags, in which a backslash is an ordinary character.
func splitTags(list string) []string { return splitQuoted(strings.ReplaceAll(list, `\`, `\\`), ',') }
