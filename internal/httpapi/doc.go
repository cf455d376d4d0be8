// Package httpapi is HTTP in, domain out. It knows no SQL, no Redis and no
// lock.
//
// # Contract first
//
// openapi.yaml is the contract. From it come the types, the router and the
// interface that the handlers implement (openapi.gen.go, made by go generate),
// the check of every request, who may use which operation, and the document served to clients. A
// route below /api that is not in it does not exist, and one that it says nothing
// about is for admins.
//
// # A request
//
//	stamp             X-Instance-Id, no-store, nosniff; Connection: close while draining
//	telemetry         span and metrics
//	logRequest        method, route, status, duration; never a header or a body
//	recoverPanic      a panic is a 500 without details
//	limitTime         the deadline that everything below obeys; Prefer: wait moves it
//	refuseOtherSites  403 to what a browser sends for a page of another site
//	identify          401 or 403, before the body is read
//	rules.check       path, query, header and body against the specification
//	refuseStrangers   an order in the name of another customer: 403
//	limitRate         too many orders or extensions of one customer: 429, before anything that an order costs
//	applyPreferences  says what of Prefer had an effect
//	once              a request whose answer is known gets that answer
//	api               one method per operation: unpack, call the domain, pack
//
// rules.check comes before the generated binding because that decodes like
// encoding/json does: it takes SKU for sku, the last of two equal members, and
// {"a":1}{"a":2} for its first half. See [Problem] for how refusals look;
// problem.go is the one place where errors become answers. An unknown error is
// logged and answered as internal, so that nothing of it leaks.
//
// # Once
//
// Every POST of an order or a delivery takes an Idempotency-Key. Its scope is the customer whose key was
// shown (for a new order without one, or with that of an admin, the customer that the order is for), whether it
// is an admin's, the method, the path and the key. The payload is compared by a hash of what it
// says: of the JSON value with sorted members and no spaces, not of its bytes, since a client that
// builds its request anew may write it in another way.
//
// The domain stores the result of a request with its effect. A duplicate gets that result, and the same function as at first
// makes the response of it, so the two cannot differ. Status, Location and body are given again; Idempotent-Replayed: true says so. Final are
// successes and conflicts (409); of those that change an order the domain stores the successes, as its state gives the
// same conflict again. What cannot succeed at any time (400, 401, 403, 404, 413,
// 415, 422) is found out again each time; 429 and 5xx decide nothing.
//
// Equal requests that arrive at one instance at the same time stand in line, before they
// have taken a permit, a guard or a connection to the database; the next one works only if the one
// before left no answer. The line is a courtesy of one process, and no guarantee depends on it. Equal requests to
// several instances work side by side up to the commit, of which one succeeds.
//
// # Waiting
//
// Prefer: wait=N lets a request take N seconds, at most 30, beyond its deadline, and moves the
// deadline by which the server would cut its answer off; for this route alone, since a
// server whose deadlines are long for everybody is kept busy by anybody. Unknown
// and malformed preferences are ignored, as RFC 7240 has it; none of them is an error.
//
// # Identity
//
// A customer's key is the owner that every call of the domain gets: whose order
// it is, is decided in the query that reads it, and an order of somebody else is one that does not exist (404).
// Without Config.Identity nobody is asked and everybody may do everything.
//
// # Types of problems
//
// The type of a problem is a path of this service, /docs/problems/..., where it is described:
// a relative reference, which RFC 9457 resolves against the URL of the request, so that it works behind every name
// that the service has. As an identifier it is compared as it is.
//
// # Stopping
//
// [Drain] makes /readyz fail and every answer close its connection. Only after
// the balancer has noticed should the server be shut down: Shutdown closes idle
// connections at once, and a request that a client is just sending into one of
// them is lost without the client knowing whether it was carried out.
//
// # Trust
//
// [NewAdmin] is another handler, for a listener on a loopback address: what is below
// /api/v1/timers, metrics, and profiles. It asks for the key of an admin if there are keys.
//
// Both refuse changes that a browser asks for on behalf of a page of another site. Where nobody is asked for a key, a
// page could also reach a loopback listener under a name of its own that points there: [Config.LocalOnly] refuses all
// names but those of this machine.
//
// No proxy is trusted: the address of a client is that of its connection,
// whatever X-Forwarded-For says. No answer may load or run anything in a browser, except the
// pages below /docs, which get everything from here.
package httpapi
