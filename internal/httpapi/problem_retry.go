package httpapi

// advice says how a client retries a request that got a problem. It is the retry matrix of the specification and of the pages.
type advice struct {
	AsItIs     string // whether the same request can succeed later
	Key        string // the Idempotency-Key of the retry
	When       string // how long to wait
	retryAfter bool   // the response has Retry-After
}

// The advice for the problem types.
var (
	correctFirst = advice{AsItIs: "no, correct it", Key: "same or new", When: "at once"}
	readFirst    = advice{AsItIs: "no, read first", Key: "same or new", When: "at once"}
	otherKey     = advice{AsItIs: "yes, with another key", Key: "new", When: "at once"}

	soldOut      = advice{AsItIs: "yes, with another key", Key: "new", When: "when units may have been released, or with Prefer: wait=N"}
	limitReached = advice{AsItIs: "yes, with another key", Key: "new", When: "when the customer has fewer orders"}
	whileQueued  = advice{AsItIs: "only while state is QUEUED", Key: "same", When: "when the order is PENDING: poll"}

	later          = advice{AsItIs: "yes", Key: "same", When: "after Retry-After", retryAfter: true}
	laterSpread    = advice{AsItIs: "yes", Key: "same", When: "after Retry-After and a random delay", retryAfter: true}
	outcomeUnknown = advice{AsItIs: "with a key; without one, read first", Key: "same", When: "after Retry-After", retryAfter: true}
	effectUnknown  = advice{AsItIs: "with a key; without one, read first", Key: "same", When: "after a delay that grows"}
)

// effectOf returns the effect of a request that got a problem of the type t.
func effectOf(t ProblemType) string {
	if t == TypeOutcomeUnknown || t == TypeInternal {
		return "unknown"
	}
	return "none"
}
