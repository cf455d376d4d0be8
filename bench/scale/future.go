package main

// The page assumes these, because one machine cannot measure them.
const (
	network    = 0.0002 // round trip between two machines, in seconds
	catalogue  = 10_000 // SKUs
	perMachine = 96     // buyers for each instance
	perWriter  = 10     // instances for each writer, if there are several
	across     = 0.05   // share of baskets with SKUs of two writers, in a line of its own
	cores      = 2      // of each machine, as of the measured one
)

// fleets are how many machines have an instance.
var fleets = []int{1, 10, 100, 1000}

// Future is one kind of shop, by the number of its machines.
type Future struct {
	Name    string   `json:"name"`
	Results []Result `json:"results"` // by fleets; nothing is simulated if it has no orders
}

// kinds are the shops that the page compares.
var kinds = []struct {
	name                   string
	several, routed, apart bool // several writers; the orders of a SKU go to one instance; some baskets have two writers
	zipf                   float64
}{
	{"one writer, SKUs equally popular", false, false, false, 0},
	{"one writer, Zipf", false, false, false, 1},
	{"a writer per 10 machines, SKUs equally popular", true, false, false, 0},
	{"the same, each SKU sent to one instance", true, true, false, 0},
	{"the same, Zipf", true, true, false, 1},
	{"the same, 5 % of baskets at two writers", true, true, true, 1},
}

// futures simulates all kinds. One SKU may be the last to fill: until then the buyers who will wait for it buy others.
func futures(c Costs, flush, seconds float64, fleets []int) (all []Future) {
	for _, k := range kinds {
		f := Future{Name: k.name}
		for _, n := range fleets {
			s := Setup{
				Instances: n, Buyers: perMachine * n, SKUs: catalogue, Zipf: k.zipf, Cores: cores, Writers: 1, Routed: k.routed,
				Network: network, Flush: flush, Seconds: seconds,
			}
			if s.WarmUp = seconds; k.zipf > 0 || !k.several {
				s.WarmUp = seconds * max(4, float64(n)/25)
			}
			if k.several {
				s.Writers = n / perWriter
				s.WarmUp = min(s.WarmUp, 4*seconds)
			}
			if k.apart {
				s.Across = across
			}
			if k.several && s.Writers < 2 {
				f.Results = append(f.Results, Result{})
				continue
			}
			f.Results = append(f.Results, Simulate(c, s, 1))
		}
		all = append(all, f)
	}
	return all
}

// Late reports whether buyers of the i-th fleet wait longer than the 200 ms for which the service waits for rows.
func (f Future) Late(i int) bool {
	return float64(perMachine*fleets[i]) > 0.2*f.Results[i].OrdersPerSecond
}
