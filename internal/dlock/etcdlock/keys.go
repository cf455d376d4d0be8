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

// keys names all that is written.
type keys struct{ prefix string }

// queue begins the names of all who hold key or wait for it. A slash in key would
// make it part of another queue.
func (k keys) queue(key string) string { return k.prefix + url.PathEscape(key) + "/" }

// own is the name of one holder or waiter.
func (k keys) own(key, owner string) string { return k.queue(key) + owner }

// forced is where an owner finds out that it was force-released. No key is empty, so no
// queue begins like that.
func (k keys) forced(owner string) string { return k.prefix + "/" + owner }

// ownerIn returns the owner in a name of the queue of key.
func (k keys) ownerIn(key, own string) string { return strings.TrimPrefix(own, k.queue(key)) }

// held is the name of what a grant holds.
func (k keys) held(h dlock.Held) string { return k.own(h.Key, h.Fence.Owner) }

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
