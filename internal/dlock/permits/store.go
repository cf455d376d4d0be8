package permits

import (
	"context"
	"time"
)

// Store keeps the leases of all instances that share the permits of one key.
type Store interface {
	// Renew renews the lease of r.Instance, and divides the permits of all instances again. It blocks until the store
	// answers or ctx ends. After an error the lease may have been renewed or not.
	Renew(ctx context.Context, r Renewal) (Division, error)

	// Release ends the lease of an instance. After an error the lease ends with its TTL.
	Release(ctx context.Context, instance string) error

	// Resize changes the number of permits. After an error the number may have changed or not.
	Resize(ctx context.Context, permits int) error
}

// Renewal is what an instance reports to the store.
type Renewal struct {
	Instance string
	Held     int           // permits that it cannot do without now
	Wanted   int           // permits that it needs
	TTL      time.Duration // of the lease
	Permits  int           // over all instances, unless they were resized
	Hold     time.Duration // how long nobody gets more permits if the store has no lease
	Call     int64         // its number: a call that was overtaken by a later one must fail and change nothing
}

// Division is what the store answers.
type Division struct {
	Granted   int // to this instance. It may exceed Target: the instance gives up the difference as soon as it can
	Target    int
	Permits   int // over all instances
	Held      int // by all instances
	Instances int
}
