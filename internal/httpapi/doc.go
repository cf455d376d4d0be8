// Package httpapi is the HTTP layer: it translates requests into calls of the domain, and results into
// responses. It imports no SQL, no Redis and no lock.
//
// # Contract first
//
// openapi.yaml is the contract. go generate creates the types, the router and the interface of the
// handlers from it (openapi.gen.go). The validation of requests, the access rules and the
// document for clients use the same file. A route below /api that is not in it does not exist. An operation
// without security requirements is for admins.
//
// Requests are closed and responses are open: clients ignore unknown fields. The examples of problems and the retry matrix in
// openapi.yaml come from the table of problem types (problem_types.go, problem_retry.go). make api-client generates
// clients from openapi.yaml, and runs the life of an order with them.
//
// # A request
//
//	commonHeaders        X-Instance-Id, no-store, nosniff; Connection: close while draining
//	telemetry            span and metrics
//	logRequest           traceresponse; in the log: method, route, status, duration; never a header or a body
//	recoverPanic         a panic is a 500 without details
//	limitTime            the deadline of everything below; Prefer: wait moves it
//	refuseOtherSites     403 to requests of a browser for a page of another site
//	identify             401 or 403, before the body is read
//	check                path, query, key and body against the specification
//	limitCustomer        403 to an order in the name of another customer; 429 to too many orders or extensions of one
//	                     customer, before any work for the order
//	applyPreferences     sets Preference-Applied
//	once                 replays the stored response of a duplicate request
//	api                  one method per operation: unpack, call the domain, pack
//
// check runs before the generated binding, because the binding decodes like encoding/json. That accepts SKU for
// sku, the last of two duplicate fields, and the first half of {"a":1}{"a":2}. See [Problem] for the form of
// refusals; problem.go is the only place that maps errors to responses. An unknown error is logged and reported as
// internal, so that no details leak.
//
// # Idempotency
//
// Every POST of an order or a restock takes an Idempotency-Key. A key counts per customer, kind of caller (admin or
// not), method and path. The customer is that of the API key. For a new order by an admin or without authentication,
// it is the customer of the order. Payloads are compared by a hash of the JSON value with sorted fields and no
// spaces. A client may serialize a retry in another way.
//
// The domain stores the result of a request with its effect. A duplicate request gets that result, and the same
// function renders both responses, so that the two cannot differ. A replay has the same status, Location and body,
// and Idempotent-Replayed: true. Final responses are successes and conflicts (409). For operations that change an
// order, the domain stores only successes, because the state of the order yields the same conflict again. Permanent
// refusals (4xx except 409 and 429) are computed again each time. 429 and 5xx decide nothing.
//
// Concurrent duplicate requests at one instance wait for each other before they take a permit, a lock or a database
// connection. The next one runs only if the previous one left no response. This queue belongs to one process, and no
// guarantee depends on it. Duplicate requests at several instances run concurrently up to the commit, of which one succeeds.
//
// # Waiting
//
// Prefer: wait=N lets a request take N seconds, at most 30, beyond its deadline. The write deadline of the server moves
// accordingly, for this route only: with long deadlines for all routes, slow clients could exhaust the server.
// Unknown and malformed preferences are ignored, as RFC 7240 requires.
//
// # Identity
//
// Every call of the domain gets the customer of the API key as owner. The query that reads an order compares the owner,
// so the order of another customer does not exist (404).
// Without Config.Identity, authentication is disabled and every caller may do everything.
//
// # Types of problems
//
// The type of a problem is the path of its page, /docs/problems/...: a relative reference, which RFC 9457 resolves
// against the URL of the request. So it works behind every name of the service. Clients compare it as a string.
// The page of a renamed type redirects to the current one.
//
// # Stopping
//
// [Drain] makes /readyz fail and every response close its connection. Shut the server down only after the balancer
// has noticed. Shutdown closes idle connections at once. If a client is just sending a request into such a
// connection, the request is lost, with an unknown outcome.
//
// # Trust
//
// [NewAdmin] returns another handler, for a listener on a loopback address: /api/v1/timers, metrics, and profiles.
// If authentication is enabled, it requires the key of an admin.
//
// Both handlers refuse changes that a browser requests on behalf of a page of another site. Without authentication, a
// page could also reach a loopback listener under a name of its own that points there. [Config.LocalOnly] refuses all
// names except those of this machine.
//
// No proxy is trusted: the address of a client is that of its connection, whatever X-Forwarded-For says. No response
// may load or run anything in a browser. The pages below /docs may load resources of this service only.
package httpapi
