package app_test

import (
	"reflect"
	"strings"
	"testing"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/etcdlock"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/dlock/redlock"
	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/dlock/zklock"
	"example.com/shop/internal/stock"
)

// A strategy says of its lock service what the code of that can do.
func TestRaisesCounterAgreesWithTheLockers(t *testing.T) {
	t.Parallel()
	lockers := map[string]reflect.Type{
		"redis": reflect.TypeFor[*redislock.Locker](), "redlock": reflect.TypeFor[*redlock.Locker](), "zookeeper": reflect.TypeFor[*zklock.Locker](),
		"etcd": reflect.TypeFor[*etcdlock.Locker](), "sql": reflect.TypeFor[*sqllock.Locker](),
	}
	all := stock.NewStrategies(stock.Lockers{})
	for _, name := range all.Names() {
		st, _ := all.Lookup(name)
		locker, ok := lockers[strings.TrimSuffix(name, "-cohort")]
		if fenced := st.Update == stock.Fenced; ok != fenced {
			t.Errorf("%s: fenced: %v, known here: %v", name, fenced, ok)
		}
		if ok && st.RaisesCounter != locker.Implements(reflect.TypeFor[dlock.CounterRaiser]()) {
			t.Errorf("%s: raises its counter: %v", name, st.RaisesCounter)
		}
	}
}
