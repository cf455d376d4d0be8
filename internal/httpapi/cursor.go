package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"

	"github.com/google/uuid"

	"example.com/shop/internal/order"
)

// cursorVersion is the first byte of every cursor. A cursor of another version is refused, and
// a client that meets an upgrade in the middle of a list begins again.
const cursorVersion = 1

// cursorOf returns the cursor of the page of f that begins behind the order with the id before. It is
// the version, the id and a check over both and the list that they belong to, so that a
// cursor leads nowhere else than where it was given out. The check is no secret: who forges one
// chooses where a page of its own orders begins, and nothing more.
func cursorOf(f order.Filter, before string) (string, error) {
	id, err := uuid.Parse(before)
	if err != nil {
		return "", err
	}
	c := append([]byte{cursorVersion}, id[:]...)
	return base64.RawURLEncoding.EncodeToString(append(c, checkOf(f, c)...)), nil
}

// placeOfCursor returns Filter.Before of a cursor of f.
func placeOfCursor(f order.Filter, cursor string) (before string, ok bool) {
	const plain, whole = 1 + 16, 1 + 16 + checkLen
	c, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(c) != whole || c[0] != cursorVersion || subtle.ConstantTimeCompare(c[plain:], checkOf(f, c[:plain])) != 1 {
		return "", false
	}
	return uuid.UUID(c[1:plain]).String(), true
}

const checkLen = 8

func checkOf(f order.Filter, c []byte) []byte {
	// None of the texts has a NUL.
	sum := sha256.Sum256(append([]byte(f.Owner+"\x00"+string(f.Status)+"\x00"+f.SKU+"\x00"), c...))
	return sum[:checkLen]
}
