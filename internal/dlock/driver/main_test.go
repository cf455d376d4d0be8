package driver_test

import (
	"errors"
	"testing"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestMain(m *testing.M) { testbedtest.Main(m) }

var errAway = errors.New("the store is unavailable")
