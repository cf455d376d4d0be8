package httpapi

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
)

// maxWait is the longest time that a client may ask to wait.
const maxWait = 30 * time.Second

// preference has the preferences of a client (RFC 7240) that orders support.
type preference struct {
	async   bool // respond-async
	bounded bool // wait was given
	wait    time.Duration
}

// parsePrefer reads the fields of Prefer. It never fails: unknown and
// malformed preferences are ignored, and a longer wait than [maxWait] is [maxWait]. If a preference
// is given several times, the first one wins.
func parsePrefer(fields []string) (p preference) {
	seen := make(map[string]bool)
	for _, element := range splitList(strings.Join(fields, ",")) {
		// Parameters come after the first semicolon; the preferences here have none.
		name, value, _ := strings.Cut(splitQuoted(element, ';')[0], "=")
		name = strings.ToLower(strings.Trim(name, " \t"))
		if seen[name] {
			continue
		}
		seen[name] = true
		value = strings.Trim(value, " \t")
		if unquoted, ok := strings.CutPrefix(value, `"`); ok {
			value = strings.TrimSuffix(unquoted, `"`)
		}
		switch name {
		case "respond-async":
			p.async = value == ""
		case "wait":
			p.wait, p.bounded = seconds(value)
		}
	}
	return p
}

// seconds reads a number of seconds (delta-seconds), at most [maxWait].
func seconds(s string) (d time.Duration, ok bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n > uint64(maxWait/time.Second) {
		return maxWait, true // also for a number that overflows
	}
	return time.Duration(n) * time.Second, true
}

// splitList splits an HTTP list at commas outside of quotes.
func splitList(s string) []string { return splitQuoted(s, ',') }

// splitQuoted splits s at each sep outside of quotes. Within quotes, a backslash escapes the
// next character.
func splitQuoted(s string, sep byte) (parts []string) {
	start, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == sep && !quoted:
			parts = append(parts, s[start:i])
			start = i + 1
		}
	}
	return append(parts, s[start:])
}

// applied returns the value of Preference-Applied.
func (p preference) applied(queued bool) string {
	var all []string
	if queued {
		all = append(all, "respond-async")
	}
	if p.bounded {
		all = append(all, "wait="+strconv.Itoa(int(p.wait/time.Second)))
	}
	return strings.Join(all, ", ")
}

func (p preference) patience() order.Preference {
	return order.Preference{Bounded: p.bounded, Wait: p.wait, Async: p.async}
}

// mayHaveWaited reports whether a request that failed with err may have waited for a lock or for units. No order
// waits for a permit.
func mayHaveWaited(err error) bool {
	switch problemOf(err).Type {
	case TypeOutOfStock:
		return !errors.Is(err, order.ErrNotWaiting)
	case TypeLockTimeout, TypeDraining, TypeOutcomeUnknown:
		return true
	default:
		return false
	}
}

// applyPreferences sets Preference-Applied to the preferences that had an effect. A replayed response
// ignores the preferences of the retry.
func (a *api) applyPreferences(next StrictHandlerFunc, _ string) StrictHandlerFunc {
	return func(c *gin.Context, request any) (any, error) {
		response, err := next(c, request)
		_, queued := response.(PlaceOrder202JSONResponse)
		_, replayed := errors.AsType[*idempotency.AnsweredError](err)
		if applied := stateOf(c.Request.Context()).prefer.applied(queued); applied != "" && !replayed && (err == nil || mayHaveWaited(err)) {
			c.Header("Preference-Applied", applied)
		}
		return response, err
	}
}
