package redisstock

// Every key is built here. Those of one SKU have the same hash tag, so that they live in one slot
// of a Redis Cluster, as a script requires. A SKU has no braces.

const prefix = "shop:units:"

func keysOf(sku string) []string {
	level := prefix + "{" + sku + "}"
	return []string{level, level + ":taken"}
}
