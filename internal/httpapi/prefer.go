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

// preference is what a client prefers (RFC 7240), as far as an order knows how.
type preference struct {
	async   bool // respond-async
	bounded bool // wait was given
	wait    time.Duration
}

// parsePrefer reads the fields of Prefer. Nothing in them is an error: what is unknown or
// malformed is no preference, and a wait that is too long is [maxWait]. Of a preference that
// is given several times the first counts, whatever its value.
func parsePrefer(fields []string) (p preference) {
	seen := make(map[string]bool)
	for _, element := range splitList(strings.Join(fields, ",")) {
		// Behind the first semicolon are parameters, of which no preference here has any.
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
		return maxWait, true // as many digits as there may be
	}
	return time.Duration(n) * time.Second, true
}

// splitList splits a list of HTTP at the commas that are not within quotes.
func splitList(s string) []string { return splitQuoted(s, ',') }

// splitQuoted splits s at each sep that is not within quotes, in which a backslash takes the
// meaning from the character behind it.
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

// mayHaveWaited reports whether a request that failed with err was where orders wait: for a lock or for units. None
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

// applyPreferences says in the answer which preferences had an effect. An answer that was
// given before is given again, whatever is preferred now.
func (a *api) applyPreferences(next StrictHandlerFunc, _ string) StrictHandlerFunc {
	return func(c *gin.Context, request any) (any, error) {
		response, err := next(c, request)
		_, queued := response.(PlaceOrder202JSONResponse)
		_, replayed := errors.AsType[*idempotency.AnsweredError](err)
		if applied := callOf(c.Request.Context()).prefer.applied(queued); applied != "" && !replayed && (err == nil || mayHaveWaited(err)) {
			c.Header("Preference-Applied", applied)
		}
		return response, err
	}
}
