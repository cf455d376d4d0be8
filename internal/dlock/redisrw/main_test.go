package redisrw_test

import (
	"testing"

	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

const ttl = redistest.TTL

func TestMain(m *testing.M) { testbedtest.Main(m) }
