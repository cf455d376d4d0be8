package httpapi

import "net/http"

const exampleOrder = "0198c5a2-7d10-7c3e-9b1f-3f2a6f1f9d01"

// temporaryProblems are the problems of valid requests, which may succeed at another time.
var temporaryProblems = map[ProblemType]problemType{
	TypeSettingConflict: {
		status: http.StatusConflict, title: "Setting conflict", advice: readFirst,
		meaning: "Another write of the setting came first. Nothing happened.",
		remedy:  "Read /api/v1/cluster, and decide again with the current version.",
		example: Problem{Detail: "The setting has another version than the one to replace. Nothing happened."},
	},
	TypeConfigReadOnly: {
		status: http.StatusConflict, title: "Config read-only", advice: correctFirst,
		meaning: "The instances share no configuration: each has the configuration of its flags. Nothing happened.",
		remedy:  "Start the instances with --zookeeper, or with other flags.",
		example: Problem{Detail: "The instances were started without --zookeeper, and have the configuration of their flags."},
	},
	TypeOutOfStock: {
		status: http.StatusConflict, title: "Out of stock", advice: soldOut,
		meaning: "Fewer units are for sale than the order asks for. Nothing was reserved, not even the items that are available.",
		remedy:  "Order what is available of each SKU in shortages; or send Prefer: wait=N to wait up to N seconds for released units.",
		example: Problem{
			Detail:    "Not enough units are for sale. Nothing was reserved.",
			Shortages: []Shortage{{SKU: "ticket", Requested: 2, Available: 1}},
		},
	},
	TypePurchaseLimit: {
		status: http.StatusConflict, title: "Purchase limit", advice: limitReached,
		meaning: "With this order the customer would have more units of a SKU, bought or reserved, than one customer may buy. Nothing was reserved.",
		remedy:  "Order at most exceeded.limit - exceeded.had units of the SKU, or cancel another order.",
		example: Problem{
			Detail:   "With this order the customer would have more units of a SKU than one customer may buy. Nothing was reserved.",
			Exceeded: &Exceeded{SKU: "ticket", Limit: 4, Had: 3},
		},
	},
	TypeOpenOrdersLimit: {
		status: http.StatusConflict, title: "Open orders limit", advice: limitReached,
		meaning: "The customer has as many open orders as one customer may have. Nothing was reserved.",
		remedy:  "Pay or cancel an order, or wait until one expires.",
		example: Problem{
			Detail:   "The customer has as many open orders as one customer may have. Nothing was reserved.",
			Exceeded: &Exceeded{Limit: 5, Had: 5},
		},
	},
	TypeOrderStateConflict: {
		status: http.StatusConflict, title: "Order state conflict", advice: whileQueued,
		meaning: "The order is in a state that does not allow the operation: not placed yet, paid, cancelled, expired or rejected. Nothing happened. A payment for an order that is EXPIRED took nothing.",
		remedy:  "Read state. A QUEUED order will be placed or rejected: poll it until then, and retry with the same key, if any. Any other state is final for this operation; place a new order.",
		example: Problem{Detail: "The order is EXPIRED, which does not allow this.", OrderID: exampleOrder, State: "EXPIRED"},
	},
	TypeRequestInFlight: {
		status: http.StatusConflict, title: "Request in flight", advice: later,
		meaning: "A request with the same Idempotency-Key was in flight until the time limit of this request. This request did nothing; the other request may still succeed.",
		remedy:  "Retry the same request with the same key after Retry-After seconds.",
		example: Problem{Detail: "A request with the same Idempotency-Key was in flight until the time limit of this request. This request did nothing."},
	},
	TypeIdempotencyKeyReused: {
		status: http.StatusUnprocessableEntity, title: "Idempotency key reused", advice: otherKey,
		meaning: "The Idempotency-Key was used for the same path with another payload, and the response to that is still kept. Nothing happened.",
		remedy:  "Use a new key for every new request. Reuse a key only to retry an identical request.",
		example: Problem{Detail: "The Idempotency-Key was used with another payload. Nothing happened."},
	},
	TypeConcurrencyLimit: {
		status: http.StatusTooManyRequests, title: "Concurrency limit", advice: laterSpread,
		meaning: "Too many orders are in flight, of all customers or of one SKU. Nothing happened.",
		remedy:  "Retry after Retry-After seconds plus a random delay.",
		example: Problem{Detail: "Too many orders are in flight. Nothing happened."},
	},
	TypeRateLimited: {
		status: http.StatusTooManyRequests, title: "Rate limited", advice: later,
		meaning: "The customer places or extends orders faster than one customer may. Nothing happened. Payments and cancellations are never limited.",
		remedy:  "Retry after Retry-After seconds. The RateLimit field of every response has the remaining quota.",
		example: Problem{Detail: "The customer places or extends orders faster than one customer may. Nothing happened."},
	},
	TypeLockTimeout: {
		status: http.StatusServiceUnavailable, title: "Lock timeout", advice: later,
		meaning: "The request waited for a lock or a row until its time limit. With Prefer: wait=0, the request would have had to wait. Nothing happened.",
		remedy:  "Retry after Retry-After seconds, or send Prefer: respond-async to queue the order.",
		example: Problem{Detail: timeoutDetail},
	},
	TypeStoreUnavailable: {
		status: http.StatusServiceUnavailable, title: "Store unavailable", advice: later,
		meaning: "A store that the request needs is unavailable. Nothing happened.",
		remedy:  "Retry after Retry-After seconds.",
		example: Problem{Detail: "A store that the request needs is unavailable. Nothing happened."},
	},
	TypeOutcomeUnknown: {
		status: http.StatusServiceUnavailable, title: "Outcome unknown", advice: outcomeUnknown,
		meaning: "The store did not confirm the request. It may have been carried out.",
		remedy:  "With an Idempotency-Key, retry the same request: it is carried out once. Otherwise read what the request would have changed, such as the order that order_id names. Operations on timers can be repeated.",
		example: Problem{Detail: outcomeUnknownDetail, OrderID: exampleOrder},
	},
	TypeTooManyListeners: {
		status: http.StatusServiceUnavailable, title: "Too many listeners", advice: later,
		meaning: "Too many clients subscribe to the events of this instance, in all or of this customer. Nothing happened.",
		remedy:  "Close unused streams, or retry after Retry-After seconds; another instance may answer.",
		example: Problem{Detail: "Too many clients subscribe to events of this instance."},
	},
	TypeDraining: {
		status: http.StatusServiceUnavailable, title: "Draining", advice: later,
		meaning: "The instance is shutting down. An order that waited for units got none. Nothing happened.",
		remedy:  "Retry the request; another instance answers it.",
		example: Problem{Detail: "The instance is shutting down."},
	},
}
