package stock

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// ErrOtherShard is [ErrNotFound] of a SKU that belongs to another shard.
var ErrOtherShard = fmt.Errorf("%w in this shard", ErrNotFound)

// Shard is a part of all SKUs, which has a database of its own. It has the SKUs whose keys are in a range. The key of a SKU is the XXH64 of
// its name, as eight bytes, the least significant one first. So does Vitess's vindex xxhash, whose names the ranges
// have: -80 and 80- are the halves, -40, 40-80, 80-c0 and c0- the quarters. The zero value has all SKUs.
type Shard struct {
	name        string
	first, last uint64
}

// ParseShard returns the shard with a name. That of all SKUs is empty, or a dash.
func ParseShard(name string) (Shard, error) {
	if name == "" {
		return Shard{}, nil
	}
	from, to, ok := strings.Cut(name, "-")
	if !ok {
		return Shard{}, errors.New("want a range of keys as Vitess has it, such as -80 or 80-")
	}
	first, err := bound(from)
	end, wrong := bound(to)
	if err := errors.Join(err, wrong); err != nil {
		return Shard{}, err
	}
	if to != "" && first >= end {
		return Shard{}, fmt.Errorf("the range %s is empty", name)
	}
	return Shard{name, first, end - 1}, nil
}

// bound returns the key that begins with the bytes of text, followed by zeros.
func bound(text string) (uint64, error) {
	var key [8]byte
	if len(text) > 16 {
		return 0, fmt.Errorf("the bound %s has more than 16 digits", text)
	}
	if _, err := hex.Decode(key[:], []byte(text)); err != nil {
		return 0, fmt.Errorf("the bound %s is not made of pairs of hexadecimal digits", text)
	}
	return binary.BigEndian.Uint64(key[:]), nil
}

// String returns the name of the shard.
func (s Shard) String() string { return s.name }

// Has reports whether a SKU is in the shard.
func (s Shard) Has(sku string) bool {
	if s == (Shard{}) {
		return true
	}
	key := bits.ReverseBytes64(xxhash.Sum64String(sku))
	return s.first <= key && key <= s.last
}
