//go:build ignore

// Command life runs the life of an order with a client that is generated from the description of the API alone.
// Usage: go run life.go client.gen.go URL
package main

import (
	"context"
	"fmt"
	"log"
	"os"
)

// got returns a response, and ends the program if there is none.
func got[R any](response R, err error) R {
	if err != nil {
		log.Fatal(err)
	}
	return response
}

// check ends the program unless a response is as it must be.
func check(ok bool, step string, body []byte) {
	if !ok {
		log.Fatalf("%s: %s", step, body)
	}
}

func main() {
	ctx, c := context.Background(), got(NewClientWithResponses(os.Args[1]))
	sku := got(c.CreateSKUWithResponse(ctx, "ticket", NewSKU{OnHand: 2, Strategy: "conditional"}))
	check(sku.JSON201 != nil && sku.JSON201.Available == 2, "create", sku.Body)

	// A retry with the same key gets the first response again.
	key := "cart-17"
	place := func() *PlaceOrderResponse {
		r := got(c.PlaceOrderWithResponse(ctx, &PlaceOrderParams{IdempotencyKey: &key}, NewOrder{CustomerID: "c1", Items: []NewItem{{SKU: "ticket", Quantity: 1}}}))
		check(r.JSON201 != nil && r.JSON201.Status == PENDING, "place", r.Body)
		return r
	}
	first, second := place(), place()
	id := first.JSON201.ID
	check(first.HTTPResponse.Header.Get("Idempotent-Replayed") == "", "place: replayed", first.Body)
	check(second.HTTPResponse.Header.Get("Idempotent-Replayed") == "true" && second.JSON201.ID == id, "place again: not replayed", second.Body)

	// The type of a problem decides which fields it has.
	short := got(c.PlaceOrderWithResponse(ctx, nil, NewOrder{CustomerID: "c2", Items: []NewItem{{SKU: "ticket", Quantity: 2}}}))
	check(short.ApplicationProblemJSON409 != nil, "place what there is not", short.Body)
	shortage, ok := got(short.ApplicationProblemJSON409.ValueByDiscriminator()).(OutOfStockProblem)
	check(ok && len(shortage.Shortages) == 1 && shortage.Shortages[0].Available == 1, "place what there is not", short.Body)

	paid := got(c.PayOrderWithResponse(ctx, id, nil, Payment{PaymentID: "p1"}))
	check(paid.JSON200 != nil && paid.JSON200.Status == CONFIRMED, "pay", paid.Body)

	cancelled := got(c.CancelOrderWithResponse(ctx, id, nil))
	check(cancelled.ApplicationProblemJSON409 != nil, "cancel what is paid", cancelled.Body)
	conflict, ok := got(cancelled.ApplicationProblemJSON409.ValueByDiscriminator()).(OrderStateConflictProblem)
	check(ok && conflict.OrderID == id && conflict.State == "CONFIRMED", "cancel what is paid", cancelled.Body)

	read := got(c.GetOrderWithResponse(ctx, id, nil))
	check(read.JSON200 != nil && read.JSON200.Status == CONFIRMED, "read", read.Body)

	moved := got(c.ListMovementsWithResponse(ctx, id))
	check(moved.JSON200 != nil && len(moved.JSON200.Movements) == 2 && moved.JSON200.Movements[1].Movement == CONFIRM, "movements", moved.Body)

	audit := got(c.RunAuditWithResponse(ctx, nil))
	check(audit.JSON200 != nil && audit.JSON200.Ok && audit.JSON200.Skus[0].Sold == 1, "audit", audit.Body)

	fmt.Printf("order %s: placed once, paid, not cancelled, audited\n", id)
}
