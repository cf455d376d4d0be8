package redisindex

import (
	"slices"
	"strconv"

	"example.com/shop/internal/timeout"
)

// Every key and channel is built here. All keys of a shard have one hash tag.

const (
	prefix    = "shop:timeout:"
	slots     = 16384 // of a Redis Cluster
	maxShards = 1024
)

// keySet are the names of what a shard has in Redis.
type keySet struct {
	pending string // sorted set: ids by due time
	pass    string // exists from a look-ahead pass until the next one is due
	channel string // of wake-ups
	name    string // KIND:PARTITION:N
}

func (x *Index) keysOf(s timeout.Shard) keySet {
	name := nameOf(s)
	base := prefix + "{" + name + "}:"
	return keySet{base + "pending", base + "pass", x.channel(name), name}
}

// channel is that of the wake-ups of a shard; without a cluster all shards have the same.
func (x *Index) channel(name string) string {
	if x.cluster == nil {
		return prefix + "wake"
	}
	return prefix + "{" + name + "}:wake"
}

// nameOf is how keys and messages name a shard.
func nameOf(s timeout.Shard) string { return s.Kind + ":" + s.Partition + ":" + strconv.Itoa(s.N) }

// Shards implements [timeout.Index].
func (x *Index) Shards(kind, partition string) []timeout.Shard {
	x.mu.Lock()
	defer x.mu.Unlock()
	key := [2]string{kind, partition}
	shards, ok := x.shards[key]
	if !ok {
		for i := range x.cfg.Shards {
			s := timeout.Shard{Kind: kind, Partition: partition, N: i}
			if x.cluster != nil {
				s = spread(s, x.cfg.Shards)
			}
			shards = append(shards, s)
		}
		x.shards[key] = shards
	}
	return slices.Clip(shards)
}

// spread returns the shard with the least number whose slot is in the part N of
// all slots. It depends on nothing but its arguments: masters come and go, shards stay.
func spread(s timeout.Shard, parts int) timeout.Shard {
	part := s.N
	for s.N = 0; slotOf(nameOf(s))*parts/slots != part; s.N++ {
	}
	return s
}

// shardOf returns the shard that has an id, by its FNV-1a hash.
func shardOf(id string, shards int) int {
	hash := uint32(2166136261)
	for i := range len(id) {
		hash = (hash ^ uint32(id[i])) * 16777619
	}
	return int((hash ^ hash>>16) % uint32(shards))
}

// slotOf is the slot of a hash tag, as a Redis Cluster counts.
func slotOf(tag string) int { return int(crc16(tag)) % slots }

// crc16 is CRC-16/XMODEM.
func crc16(s string) (crc uint16) {
	for i := range len(s) {
		crc ^= uint16(s[i]) << 8
		for range 8 {
			carry := crc & 0x8000
			crc <<= 1
			if carry != 0 {
				crc ^= 0x1021
			}
		}
	}
	return crc
}
