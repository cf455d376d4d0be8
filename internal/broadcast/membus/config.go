package membus

// Config is the configuration of a [Bus].
type Config struct {
	// Instance is the name of the process, up to 64 printable ASCII characters without
	// spaces. Empty means a random one.
	Instance string

	// Queue is how many events a subscription has room for. 0 means 256.
	Queue int
}
