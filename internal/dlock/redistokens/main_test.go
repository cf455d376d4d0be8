package redistokens_test

import (
	"testing"

	"example.com/shop/internal/testbed/testbedtest"
)

func TestMain(m *testing.M) { testbedtest.Main(m) }
