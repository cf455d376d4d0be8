package httpapi

import "net/http"

// kind is a kind of problems: how it is answered, and what its page says.
type kind struct {
	status  int
	title   string
	retry   bool    // the answer says when to try again
	meaning string  // what happened, and what did not
	remedy  string  // what the client can do
	example Problem // what an answer may have beyond type, title and status
}

// kindOf returns the kind of the problems of type t. A type stays what it is: it may get
// another text, but neither another meaning nor another status.
func kindOf(t ProblemType) kind {
	if k, ok := conflicts[t]; ok {
		return k
	}
	return mistakes[t]
}

// mistakes are the problems of requests that do not succeed at another time either.
var mistakes = map[ProblemType]kind{
	TypeMalformedRequest: {
		status: http.StatusBadRequest, title: "Malformed request",
		meaning: "The request cannot be read: its path, query, header or body has not the form that the specification asks for. Nothing happened.",
		remedy:  "Correct the request. Sending it again is of no use. The detail says which part cannot be read.",
		example: Problem{Detail: "The body is not exactly one JSON object."},
	},
	TypeInvalidRequest: {
		status: http.StatusUnprocessableEntity, title: "Invalid request",
		meaning: "The body can be read and breaks a rule of the specification, or a value is out of bounds. Nothing happened.",
		remedy:  "Correct the places that errors points to. They are JSON pointers into the body; at most ten are named.",
		example: Problem{
			Detail: "The body breaks a rule of the specification.",
			Errors: []Violation{{Pointer: "#/items/0/quantity", Detail: "number must be at least 1"}},
		},
	},
	TypeUnsupportedMediaType: {
		status: http.StatusUnsupportedMediaType, title: "Unsupported media type",
		meaning: "The body was not sent as JSON. Nothing happened.",
		remedy:  "Send Content-Type: application/json once, and no Content-Encoding.",
		example: Problem{Detail: "The body must be sent as application/json, in UTF-8 and without Content-Encoding."},
	},
	TypeBodyTooLarge: {
		status: http.StatusRequestEntityTooLarge, title: "Body too large",
		meaning: "The body is larger than 64 KiB. Nothing happened.",
		remedy:  "No request needs as much. Split the order.",
		example: Problem{Detail: "The body is larger than 64 KiB."},
	},
	TypeMethodNotAllowed: {
		status: http.StatusMethodNotAllowed, title: "Method not allowed",
		meaning: "The path exists and does not have this method. Nothing happened.",
		remedy:  "Use one of the methods in Allow.",
		example: Problem{Detail: "The path does not have this method."},
	},
	TypeNotFound: {
		status: http.StatusNotFound, title: "Not found",
		meaning: "There is no such path, order, SKU, timer or setting. The orders of other customers do not exist for the key of a customer. Nothing happened.",
		remedy:  "Check the path and the id, and whether it is the right key.",
		example: Problem{Detail: "There is no such order."},
	},
	TypeUnknownSKU: {
		status: http.StatusUnprocessableEntity, title: "Unknown SKU",
		meaning: "Items of the order name SKUs that do not exist. Nothing was reserved.",
		remedy:  "Correct the items that errors points to; at most ten are named. Names of SKUs are case-sensitive.",
		example: Problem{
			Detail: "An item names a SKU that does not exist. Nothing was reserved.",
			Errors: []Violation{{Pointer: "#/items/0/sku", Detail: "there is no SKU of this name"}},
		},
	},
	TypeUnknownStrategy: {
		status: http.StatusUnprocessableEntity, title: "Unknown strategy",
		meaning: "No strategy has the name. The SKU was not created.",
		remedy:  "Choose one of those that are listed at /api/v1/strategies.",
		example: Problem{Detail: "No strategy has this name."},
	},
	TypeStrategyUnavailable: {
		status: http.StatusUnprocessableEntity, title: "Strategy unavailable",
		meaning: "The strategy of a SKU needs a store that this instance was started without. Nothing happened.",
		remedy:  "Choose another strategy, or start the instance with the store, such as --redis.",
		example: Problem{Detail: `The strategy needs a store that this instance was started without: "redis" needs --redis.`},
	},
	TypeSKUExists: {
		status: http.StatusConflict, title: "SKU exists",
		meaning: "The SKU exists with other values. Strategy and limit of a SKU never change, its stock only by restocking. Nothing happened.",
		remedy:  "Read the SKU. To add units, restock it.",
		example: Problem{Detail: "The SKU exists with another strategy, limit or number of units. Strategy and limit never change, its stock only by restocking."},
	},
	TypeForbidden: {
		status: http.StatusForbidden, title: "Forbidden",
		meaning: "The key is valid and does not allow this: the operation is for admins, or customer_id is another customer. Or the request comes from a page of another site. Or the instance asks nobody for a key, and so serves its own machine alone, and the request names another host. Nothing happened.",
		remedy:  "Use the key of an admin, or the customer's own id. Behind a proxy, start the instance with --auth keys.",
		example: Problem{Detail: "The key is that of another customer than customer_id."},
	},
	TypeUnauthenticated: {
		status: http.StatusUnauthorized, title: "Unauthenticated",
		meaning: "The request has no API key, or one that does not work: it is mistyped, unknown, expired or revoked. Which of these is not said. Nothing happened.",
		remedy:  "Send Authorization: Bearer KEY, once. Keys are made with the command shop keys create.",
		example: Problem{Detail: "The API key is missing, or is none that works now."},
	},
	TypeCanary: {
		status: http.StatusConflict, title: "Canary",
		meaning: "The instance is a canary and does not do this. Nothing happened.",
		remedy:  "Ask another instance.",
		example: Problem{Detail: "This instance is a canary and does not rebuild. Ask another one."},
	},
	TypeInternal: {
		status: http.StatusInternalServerError, title: "Internal error",
		meaning: "The service failed in a way that it does not know. What happened is in its log, and whether the request had an effect is not known.",
		remedy:  "Read the order before you do anything else. With an Idempotency-Key the same request can be sent again.",
		example: Problem{Detail: internalDetail},
	},
}
