package e2e_test

import (
	"testing"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestSaleThroughFaultsOfALockService: three instances on MariaDB sell while a server of their lock service dies, is paused, or
// hands keys over. What is checked is that of TestSaleOnThreeServers.
func TestSaleThroughFaultsOfALockService(t *testing.T) {
	t.Parallel()
	services := []engine{
		{"Sentinel", startUnderSentinel},
		{"Cluster", startOnCluster},
		{"Redlock", startOnRedlock},
		{"ZooKeeper", startOnZooKeeper},
		{"etcd", startOnEtcd},
	}
	rows := make([]string, len(services))
	if testbedtest.Size(0, 1) == 1 {
		t.Cleanup(func() { writeFaults(t, "services", servicesHead, rows) })
	}
	for i, service := range services {
		t.Run(service.name, func(t *testing.T) {
			t.Parallel()
			rows[i] = sellThroughFaults(t, service.name, service.start(t))
		})
	}
}

// servicesHead begins the page of the lock services.
const servicesHead = `# Sales through faults of a lock service

Three instances on one MariaDB sell by each strategy that needs the service while its servers fail and are mended. Each row has the orders that were
acknowledged from the fault until the next one, those that are stored, and the longest time without an order of one of the SKUs, in seconds. All
servers and buyers share one machine. ` + "`make soak`" + ` writes the page
([TestSaleThroughFaultsOfALockService](../../../internal/e2e/failover_services_test.go)).

| service | fault | acknowledged | stored | lost | standstill |
|---|---|--:|--:|--:|--:|
`
