package broadcast_test

import (
	"context"
	"fmt"

	"example.com/shop/internal/events/broadcast/membus"
)

// An instance drops what it remembers of a key that is revoked, and everything when it may have missed a revocation.
func ExampleBus() {
	ctx := context.Background()
	bus := new(membus.Bus)
	for e := range bus.Subscribe(ctx, "keys.revoked") {
		if e.Missed { // also the first event: subscribe, and then read
			fmt.Println("drop all keys")
			bus.Publish(ctx, "keys.revoked", "k7")
			continue
		}
		fmt.Println("drop key", e.Payload)
		break
	}
	// Output:
	// drop all keys
	// drop key k7
}
