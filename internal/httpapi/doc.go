// Package httpapi is HTTP in, domain out. It knows no SQL, no Redis and no
// lock.
//
// # Contract first
//
// openapi.yaml is the contract. From it come the types, the router and the
// interface that the handlers implement (openapi.gen.go, made by go generate),
// the check of every request, and the document served to clients. A route below
// /api that is not in it does not exist.
//
// # A request
//
//	stamp         X-Instance-Id, no-store, nosniff; Connection: close while draining
//	telemetry     span and metrics
//	logRequest    method, route, status, duration; never a header or a body
//	recoverPanic  a panic is a 500 without details
//	limitTime     the deadline that everything below obeys
//	rules.check   path, query and body against the specification
//	api           one method per operation: unpack, call the domain, pack
//
// rules.check comes before the generated binding because that decodes like
// encoding/json does: it takes SKU for sku, the last of two equal members, and
// {"a":1}{"a":2} for its first half. See [Problem] for how refusals look;
// problem.go is the one place where errors become answers. An unknown error is
// logged and answered as internal, so that nothing of it leaks.
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
// /api/v1/timers, and profiles. It knows nobody by name, and refuses what browsers
// send on behalf of other sites.
//
// No proxy is trusted: the address of a client is that of its connection,
// whatever X-Forwarded-For says.
package httpapi
