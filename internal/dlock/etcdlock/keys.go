package etcdlock

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/shop/internal/dlock"
)

// The prefixes of all keys in etcd.
const (
	defaultPrefix = "shop/locks/"
	rwPrefix      = "shop/rwlocks/"
)

// The kinds of a key, which are part of its name. A key of a [Locker] has none.
const (
	exclusive = ""
	reading   = "r/"
	writing   = "w/"
)

// keys names all that is written.
type keys struct{ prefix string }

// queue begins the names of all who hold key or wait for it. A slash in key would
// make it part of another queue.
func (k keys) queue(key string) string { return k.prefix + url.PathEscape(key) + "/" }

// own is the name of one holder or waiter.
func (k keys) own(key, kind, owner string) string { return k.queue(key) + kind + owner }

// ahead begins the names of those for whom a newcomer of kind has to wait.
func (k keys) ahead(key, kind string) string {
	if kind == reading {
		return k.queue(key) + writing
	}
	return k.queue(key)
}

// forced is where an owner finds out that it was force-released. No key is empty, so no
// queue begins like that.
func (k keys) forced(owner string) string { return k.prefix + "/" + owner }

// kindOf returns the kind and the owner in a name of the queue of key.
func (k keys) kindOf(key, own string) (kind, owner string) {
	rest := strings.TrimPrefix(own, k.queue(key))
	if at := strings.LastIndexByte(rest, '/'); at >= 0 {
		return rest[:at+1], rest[at+1:]
	}
	return exclusive, rest
}

// held is the name of what a grant holds.
func (k keys) held(h dlock.Held) string { return k.own(h.Key, h.Kind, h.Fence.Owner) }

func end(prefix string) []byte { return []byte(clientv3.GetPrefixRangeEnd(prefix)) }

// ownerOf names a tenure. It is also the owner in the fencing token of a grant. The id of a lease is random and never
// reused, and the tenures of a lease have different numbers.
func ownerOf(t tenure) string { return fmt.Sprintf("%016x-%d", t.id, t.number) }

// leaseOf is the lease of an owner.
func leaseOf(owner string) (int64, error) {
	lease, _, _ := strings.Cut(owner, "-")
	raw, err := hex.DecodeString(lease)
	if err != nil || len(raw) != 8 {
		return 0, errors.New("etcdlock: no owner: " + strconv.Quote(owner))
	}
	return strconv.ParseInt(lease, 16, 64)
}
