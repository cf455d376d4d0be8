package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// A key reads mark + prefix + "_" + rest. The rest has the secret and the checksum in base32. Their 35 bytes are
// exactly 56 letters, so a key has no padding and can be written in one way only.
const (
	mark         = "shop_"
	prefixLength = 10
	secretBytes  = 32
	checkBytes   = 3
	restAt       = len(mark) + prefixLength + 1
	textLength   = restAt + (secretBytes+checkBytes)*8/5
	alphabet     = "abcdefghijklmnopqrstuvwxyz234567"
)

var encoding = base32.NewEncoding(alphabet).WithPadding(base32.NoPadding)

// errMalformed does not repeat the text, which may be a key but for one letter.
var errMalformed = errors.New("identity: no API key: want shop_ and 67 more characters as they were shown")

// Token is an API key in plain text. It prints as its prefix; only [Token.Reveal] returns
// the secret. The zero Token is no key.
type Token struct {
	prefix string
	secret [secretBytes]byte
}

// NewToken returns a new random key. Its prefix has 50 random bits and may be taken.
func NewToken() Token {
	t := Token{prefix: strings.ToLower(rand.Text()[:prefixLength])}
	rand.Read(t.secret[:])
	return t
}

// ParseToken reads a key that Reveal wrote. It accepts no other spelling. The error says nothing
// of the text.
func ParseToken(text string) (Token, error) {
	if len(text) != textLength || !strings.HasPrefix(text, mark) {
		return Token{}, errMalformed
	}
	t := Token{prefix: text[len(mark) : restAt-1]}
	rest, err := encoding.DecodeString(text[restAt:])
	if err != nil || len(rest) != secretBytes+checkBytes || !ValidPrefix(t.prefix) {
		return Token{}, errMalformed // decoding skips line breaks, so the length may be wrong
	}
	copy(t.secret[:], rest)
	if t.Reveal() != text {
		return Token{}, errMalformed
	}
	return t, nil
}

// ValidPrefix reports whether s has the form of a prefix: ten of the letters a to z and the
// digits 2 to 7.
func ValidPrefix(s string) bool {
	return len(s) == prefixLength && strings.Trim(s, alphabet) == ""
}

// Prefix names the key.
func (t Token) Prefix() string { return t.prefix }

// Reveal returns the key in plain text. Show it only to its holder.
func (t Token) Reveal() string {
	rest := append(t.secret[:], t.check()...)
	return mark + t.prefix + "_" + encoding.EncodeToString(rest)
}

// check covers the prefix as well, so that a mistyped prefix costs no lookup.
func (t Token) check() []byte {
	sum := sha256.Sum256(append([]byte(mark+t.prefix+"_"), t.secret[:]...))
	return sum[:checkBytes]
}

// Hash returns what is stored of the secret.
func (t Token) Hash() [32]byte { return sha256.Sum256(t.secret[:]) }

// String returns the key without its secret.
func (t Token) String() string { return mark + t.prefix + "_..." }

// Format implements [fmt.Formatter], so that no verb prints the secret.
func (t Token) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// LogValue implements [slog.LogValuer].
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }
