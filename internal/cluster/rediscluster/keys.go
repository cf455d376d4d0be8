package rediscluster

// Every key is built here. Those of the membership have the same hash tag, so that they
// live in one slot of a Redis Cluster, as a script requires.

const defaultPrefix = "shop:cluster:"

func (c *Cluster) memberKeys() []string {
	base := c.cfg.Prefix + "{members}"
	return []string{base, base + ":leases", base + ":state"}
}

func (c *Cluster) announcementKey(election string) string { return c.cfg.Prefix + "leader:" + election }
