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

// parsePrefer reads a list of preferences (RFC 7240). It never fails: unknown and
// malformed preferences are ignored, and a longer wait than [maxWait] is [maxWait]. If a preference
// is given several times, the first one wins.
func parsePrefer(list string) (p order.Preference) {
	seen := make(map[string]bool)
	for _, element := range splitQuoted(list, ',') {
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
			p.Async = value == ""
		case "wait":
			p.Wait, p.Bounded = seconds(value)
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
		_, refusedBefore := errors.AsType[*idempotency.AnsweredError](err)
		if refusedBefore || c.Writer.Header().Get(replayedHeader) != "" || err != nil && !mayHaveWaited(err) {
			return response, err
		}
		var applied []string
		if _, queued := response.(PlaceOrder202JSONResponse); queued {
			applied = append(applied, "respond-async")
		}
		if _, in := requestOf(c); in.prefer.Bounded {
			applied = append(applied, "wait="+strconv.Itoa(int(in.prefer.Wait/time.Second)))
		}
		if applied != nil {
			c.Header("Preference-Applied", strings.Join(applied, ", "))
		}
		return response, err
	}
}
