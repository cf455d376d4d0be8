package memlog_test

import (
	"testing"

	"example.com/shop/internal/events"
	"example.com/shop/internal/events/eventstest"
	"example.com/shop/internal/events/memlog"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestMain(m *testing.M) { testbedtest.Main(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	eventstest.RunLog(t, func(*testing.T) events.Log { return memlog.New() })
}
