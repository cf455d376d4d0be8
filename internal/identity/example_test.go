package identity_test

import (
	"context"
	"errors"
	"fmt"

	"example.com/shop/internal/identity"
)

// A key is shown once, works, and is ended.
func Example() {
	ctx := context.Background()
	keys, err := identity.New(newShelf(), identity.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, key, err := keys.Create(ctx, identity.NewKey{Customer: "c1", Name: "till 3"})
	if err != nil {
		fmt.Println(err)
		return
	}
	caller, err := keys.Authenticate(ctx, text)
	fmt.Println(caller.Customer, caller.KeyPrefix == key.Prefix, err)

	_, err = keys.Authenticate(ctx, text[:len(text)-1])
	fmt.Println(errors.Is(err, identity.ErrUnauthenticated), err)

	if _, err := keys.Revoke(ctx, key.Prefix); err != nil { // it may work here for five more seconds
		fmt.Println(err)
	}
	// Output:
	// c1 true <nil>
	// true identity: unauthenticated
}
