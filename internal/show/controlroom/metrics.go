package controlroom

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// The metrics that a card shows, as /metrics names them.
const (
	permitsMetric  = "shop_permits"
	inUseMetric    = "shop_permits_in_use"
	degradedMetric = "shop_permits_degraded"
	waitingMetric  = "shop_waitlist_size"
)

// gauges are what an instance says of itself.
type gauges struct {
	Permits  int  `json:"permits"`  // over all instances
	InUse    int  `json:"in_use"`   // by orders of this instance
	Degraded bool `json:"degraded"` // it uses its share, as Redis does not respond
	Waiting  int  `json:"waiting"`  // orders that wait for units of a sold-out SKU
}

// scrape reads the metrics of an instance at its admin address. It returns zeros if the instance does not respond.
func scrape(ctx context.Context, client *http.Client, admin string) (g gauges) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, admin+"/metrics", nil)
	if err != nil {
		return g
	}
	resp, err := client.Do(req)
	if err != nil {
		return g
	}
	defer resp.Body.Close()
	return parseGauges(resp.Body)
}

func parseGauges(r io.Reader) (g gauges) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		name, rest, ok := strings.Cut(lines.Text(), "{")
		if !ok {
			name, rest, _ = strings.Cut(lines.Text(), " ")
		}
		value, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if err != nil {
			continue
		}
		switch name {
		case permitsMetric:
			g.Permits = int(value)
		case inUseMetric:
			g.InUse = int(value)
		case degradedMetric:
			g.Degraded = value != 0
		case waitingMetric:
			g.Waiting = int(value)
		}
	}
	return g
}
