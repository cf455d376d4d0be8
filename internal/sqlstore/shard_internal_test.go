package sqlstore

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// The store of a shard creates no SKU of another one. An order that names one is refused with it, and changes nothing.
func TestSKUsOfAnotherShardAreRefused(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Config{URL: "sqlite:" + t.TempDir() + "/shop.db"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	shard, err := stock.ParseShard("-80")
	if err != nil {
		t.Fatal(err)
	}
	var own, other, copied string
	for n := 0; own == "" || other == "" || copied == ""; n++ {
		if sku := fmt.Sprint("sku-", n); shard.Has(sku) {
			own = sku
		} else {
			other, copied = sku, other
		}
	}
	strategies := stock.NewStrategies(stock.Lockers{})
	stocks, orders := stock.NewService(s, strategies, nil), order.NewService(s, strategies, order.Config{})
	for _, sku := range []string{own, copied} { // the database was copied to both shards
		if _, _, err := stocks.Create(t.Context(), stock.Level{SKU: sku, Strategy: "conditional", OnHand: 5}); err != nil {
			t.Fatal(err)
		}
	}
	s.shard = shard
	if _, created, err := stocks.Create(t.Context(), stock.Level{SKU: other, Strategy: "conditional", OnHand: 5}); created || !errors.Is(err, stock.ErrInvalid) {
		t.Errorf("%v %v", created, err)
	}
	place := func(skus ...string) error {
		var items []order.Item
		for _, sku := range skus {
			items = append(items, order.Item{SKU: sku, Quantity: 1})
		}
		_, err := orders.Place(t.Context(), order.Purchase{Customer: "c", Items: items})
		return err
	}
	for _, basket := range [][]string{{other}, {own, other}, {copied}, {own, copied}} {
		unknown, ok := errors.AsType[*order.UnknownSKUError](place(basket...))
		if !ok || !slices.Equal(unknown.SKUs, basket[len(basket)-1:]) || !slices.Equal(unknown.OtherShard, unknown.SKUs) {
			t.Errorf("%q: %+v", basket, unknown)
		}
	}
	unknown, ok := errors.AsType[*order.UnknownSKUError](place(own + "-unknown"))
	if want := s.shard.Has(own + "-unknown"); !ok || (len(unknown.OtherShard) == 0) != want {
		t.Errorf("%+v", unknown)
	}
	if l, err := s.Level(t.Context(), own); err != nil || l.Available() != 5 {
		t.Errorf("after what was refused: %+v %v", l, err)
	}
}
