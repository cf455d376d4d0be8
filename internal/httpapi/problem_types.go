package httpapi

import "net/http"

// problemType is the response of a type of problems, and the text of its page.
type problemType struct {
	status  int
	title   string
	advice  advice  // how to retry
	meaning string  // what happened, and what did not
	remedy  string  // what the client can do
	example Problem // fields of a response besides type, title and status
}

// lookupType returns the problem type named t. A problem type may get another text, but
// neither another meaning nor another status.
func lookupType(t ProblemType) problemType {
	if p, ok := temporaryProblems[t]; ok {
		return p
	}
	return permanentProblems[t]
}

// renamedProblems maps the former paths of problem types to their types. A former path redirects to the page of its type.
var renamedProblems = map[string]ProblemType{
	problemsPath + "/busy":           TypeLockTimeout,
	problemsPath + "/saturated":      TypeConcurrencyLimit,
	problemsPath + "/settings-fixed": TypeConfigReadOnly,
}

// permanentProblems are the problems of requests that will not succeed at another time.
var permanentProblems = map[ProblemType]problemType{
	TypeMalformedRequest: {
		status: http.StatusBadRequest, title: "Malformed request", advice: correctFirst,
		meaning: "The request cannot be parsed: its path, query, header or body does not have the form of the specification. Nothing happened.",
		remedy:  "Correct the request; a retry fails again. The detail names the part that cannot be parsed.",
		example: Problem{Detail: "The body is not exactly one JSON object."},
	},
	TypeInvalidRequest: {
		status: http.StatusUnprocessableEntity, title: "Invalid request", advice: correctFirst,
		meaning: "The body violates the specification, or a value is out of bounds. Nothing happened.",
		remedy:  "Correct the places that errors points to. They are JSON pointers into the body; at most ten are named.",
		example: Problem{
			Detail: "The body violates the specification.",
			Errors: []Violation{{Pointer: "#/items/0/quantity", Detail: "number must be at least 1"}},
		},
	},
	TypeUnsupportedMediaType: {
		status: http.StatusUnsupportedMediaType, title: "Unsupported media type", advice: correctFirst,
		meaning: "The body was not sent as JSON. Nothing happened.",
		remedy:  "Send Content-Type: application/json once, and no Content-Encoding.",
		example: Problem{Detail: "The body must be sent as application/json, in UTF-8 and without Content-Encoding."},
	},
	TypeBodyTooLarge: {
		status: http.StatusRequestEntityTooLarge, title: "Body too large", advice: correctFirst,
		meaning: "The body is larger than 64 KiB. Nothing happened.",
		remedy:  "Split the order into several orders.",
		example: Problem{Detail: "The body is larger than 64 KiB."},
	},
	TypeMethodNotAllowed: {
		status: http.StatusMethodNotAllowed, title: "Method not allowed", advice: correctFirst,
		meaning: "The path exists and does not have this method. Nothing happened.",
		remedy:  "Use one of the methods in Allow.",
		example: Problem{Detail: "The path does not have this method."},
	},
	TypeNotFound: {
		status: http.StatusNotFound, title: "Not found", advice: correctFirst,
		meaning: "There is no such path, order, SKU, timer or setting. The orders of other customers do not exist for the key of a customer. Nothing happened.",
		remedy:  "Check the path, the id and the API key.",
		example: Problem{Detail: "There is no such order."},
	},
	TypeUnknownSKU: {
		status: http.StatusUnprocessableEntity, title: "Unknown SKU", advice: correctFirst,
		meaning: "Items of the order name SKUs that do not exist, or that instances of another shard sell. Nothing was reserved.",
		remedy:  "Correct the items that errors points to; at most ten are named. Names of SKUs are case-sensitive. Place an order of SKUs of several shards as one order per shard.",
		example: Problem{
			Detail: "An item names a SKU that does not exist. Nothing was reserved.",
			Errors: []Violation{{Pointer: "#/items/0/sku", Detail: "there is no SKU of this name"}},
		},
	},
	TypeUnknownStrategy: {
		status: http.StatusUnprocessableEntity, title: "Unknown strategy", advice: correctFirst,
		meaning: "No strategy has the name. The SKU was not created.",
		remedy:  "Choose a strategy that /api/v1/strategies lists.",
		example: Problem{Detail: "No strategy has this name."},
	},
	TypeStrategyUnavailable: {
		status: http.StatusUnprocessableEntity, title: "Strategy unavailable", advice: correctFirst,
		meaning: "The strategy of a SKU needs a store that this instance does not have. Nothing happened.",
		remedy:  "Choose another strategy, or start the instance with the store, such as --redis.",
		example: Problem{Detail: `The strategy needs a store that this instance was started without: "redis" needs --redis.`},
	},
	TypeSKUExists: {
		status: http.StatusConflict, title: "SKU exists", advice: readFirst,
		meaning: "The SKU exists with other values. Strategy and limit of a SKU never change, its stock only by restocking. Nothing happened.",
		remedy:  "Read the SKU. To add units, restock it.",
		example: Problem{Detail: "The SKU exists with another strategy, limit or number of units. Strategy and limit never change, its stock only by restocking."},
	},
	TypeForbidden: {
		status: http.StatusForbidden, title: "Forbidden", advice: correctFirst,
		meaning: "The key is valid and does not allow this: the operation is for admins, or customer_id is another customer. Or the request comes from a page of another site. Or authentication is disabled, so that the instance serves its own machine only, and the request names another host. Nothing happened.",
		remedy:  "Use the key of an admin, or the customer's own id. Behind a proxy, start the instance with --auth keys.",
		example: Problem{Detail: "The key is that of another customer than customer_id."},
	},
	TypeUnauthenticated: {
		status: http.StatusUnauthorized, title: "Unauthenticated", advice: correctFirst,
		meaning: "The request has no valid API key: the key is missing, mistyped, unknown, expired or revoked. The response does not say which. Nothing happened.",
		remedy:  "Send Authorization: Bearer KEY, once. The command shop keys create creates keys.",
		example: Problem{Detail: "The API key is missing or invalid."},
	},
	TypeInternal: {
		status: http.StatusInternalServerError, title: "Internal error", advice: effectUnknown,
		meaning: "The service failed unexpectedly. Its log has the error. The effect of the request is unknown.",
		remedy:  "Read the order first. With an Idempotency-Key, retry the same request.",
		example: Problem{Detail: internalDetail},
	},
}
