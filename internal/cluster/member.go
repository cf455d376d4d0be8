package cluster

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"example.com/shop/internal/dlock"
)

// Member is an instance as the others see it.
type Member struct {
	Name    string    // unique among those that live
	Address string    // where it is reached
	Role    string    // what it does
	Version string    // of its program
	Started time.Time // by its own clock, to the millisecond
}

// maxText bounds the texts of a member. All of them are in the name of one node of
// ZooKeeper, and every instance reads those of all.
const maxText = 128

// Validate returns what is wrong with m: a name is required, and each text has at most 128 bytes, all of them
// printable.
func (m Member) Validate() error {
	var errs []error
	if m.Name == "" {
		errs = append(errs, errors.New("a member has no name"))
	}
	for _, text := range []string{m.Name, m.Address, m.Role, m.Version} {
		if len(text) > maxText || !utf8.ValidString(text) || strings.ContainsFunc(text, unprintable) {
			errs = append(errs, fmt.Errorf("%.20q is too long, or cannot be printed", text))
		}
	}
	return errors.Join(errs...)
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// Equal reports whether m and other say the same.
func (m Member) Equal(other Member) bool {
	started := m.Started.Equal(other.Started)
	m.Started, other.Started = time.Time{}, time.Time{}
	return started && m == other
}

// View is what is known of the members at one time.
type View struct {
	Members []Member // in the order of their names
	Ignored int      // entries of the store that are no members
}

// Equal reports whether v and other say the same.
func (v View) Equal(other View) bool {
	return v.Ignored == other.Ignored && slices.EqualFunc(v.Members, other.Members, Member.Equal)
}

// NewView returns a view of those members, each name once: the first one counts. It is
// for backends.
func NewView(members []Member, ignored int) View {
	slices.SortStableFunc(members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return View{slices.CompactFunc(members, func(a, b Member) bool { return a.Name == b.Name }), ignored}
}

// Leader says who leads, and in which term. The zero Leader means that there is none.
type Leader struct {
	Name  string      // of the instance
	Fence dlock.Fence // of its term, whose Token grows from term to term
	Since time.Time   // when the term began, by the clock of the leader, to the millisecond
}

// Elected reports whether anybody leads.
func (l Leader) Elected() bool { return l.Name != "" }

// Equal reports whether l and other are the same term.
func (l Leader) Equal(other Leader) bool { return l.Name == other.Name && l.Fence == other.Fence }

// The encodings below are what backends store: fields with a semicolon between them, which people can read and a node
// can have as its name. Later versions may add fields at the end, and a program ignores them.

// instant is how times are written. A colon would be escaped by some.
const instant = "20060102T150405.000Z"

// EncodeMember returns m as a text of five fields. It is for backends.
func EncodeMember(m Member) string {
	return encode(m.Name, m.Address, m.Role, m.Version, m.Started.UTC().Format(instant))
}

// DecodeMember is the inverse of [EncodeMember]. It returns [ErrStray] with the reason
// if the text is none of that.
func DecodeMember(text string) (Member, error) {
	fields, err := decode(text, 5)
	if err != nil {
		return Member{}, err
	}
	started, err := time.Parse(instant, fields[4])
	m := Member{fields[0], fields[1], fields[2], fields[3], started}
	if err := errors.Join(err, m.Validate()); err != nil {
		return Member{}, fmt.Errorf("%w: %w", ErrStray, err)
	}
	return m, nil
}

// EncodeLeader returns l as a text of four fields. It is for backends.
func EncodeLeader(l Leader) string {
	return encode(l.Name, strconv.FormatUint(l.Fence.Token, 10), l.Fence.Owner, l.Since.UTC().Format(instant))
}

// DecodeLeader is the inverse of [EncodeLeader]. It returns [ErrStray] with the reason
// if the text is none of that.
func DecodeLeader(text string) (Leader, error) {
	fields, err := decode(text, 4)
	if err != nil {
		return Leader{}, err
	}
	token, err := strconv.ParseUint(fields[1], 10, 64)
	since, late := time.Parse(instant, fields[3])
	if err := errors.Join(err, late, Member{Name: fields[0]}.Validate()); err != nil {
		return Leader{}, fmt.Errorf("%w: %w", ErrStray, err)
	}
	return Leader{fields[0], dlock.Fence{Token: token, Owner: fields[2]}, since}, nil
}

func encode(fields ...string) string {
	for i, field := range fields {
		fields[i] = url.PathEscape(field)
	}
	return strings.Join(fields, ";")
}

// decode returns the first n fields of text.
func decode(text string, n int) ([]string, error) {
	fields := strings.Split(text, ";")
	if len(fields) < n {
		return nil, fmt.Errorf("%w: %.80q has %d fields", ErrStray, text, len(fields))
	}
	for i, field := range fields[:n] {
		var err error
		if fields[i], err = url.PathUnescape(field); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrStray, err)
		}
	}
	return fields[:n], nil
}
