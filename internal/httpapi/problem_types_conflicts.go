package httpapi

import "net/http"

const exampleOrder = "0198c5a2-7d10-7c3e-9b1f-3f2a6f1f9d01"

// conflicts are the problems of requests that are right, and came at the wrong time.
var conflicts = map[ProblemType]kind{
	TypeSettingConflict: {
		status: http.StatusConflict, title: "Setting conflict",
		meaning: "Another write of the setting came first. Nothing happened.",
		remedy:  "Read /api/v1/cluster, and decide again with the version that is there.",
		example: Problem{Detail: "The setting has another version than the one to be replaced. Nothing happened."},
	},
	TypeSettingsFixed: {
		status: http.StatusConflict, title: "Settings fixed",
		meaning: "The instances share no configuration: each has that of its flags. Nothing happened.",
		remedy:  "Start the instances with --zookeeper, or with other flags.",
		example: Problem{Detail: "The instances were started without --zookeeper, and have the configuration of their flags."},
	},
	TypeOutOfStock: {
		status: http.StatusConflict, title: "Out of stock",
		meaning: "Fewer units are for sale than were wanted. Nothing was reserved, not even the items that are there.",
		remedy:  "Order what is available of each SKU in shortages; or send Prefer: wait=N to wait up to N seconds for units that come back.",
		example: Problem{
			Detail:    "Not enough units are for sale. Nothing was reserved.",
			Shortages: []Shortage{{SKU: "ticket", Requested: 2, Available: 1}},
		},
	},
	TypePurchaseLimit: {
		status: http.StatusConflict, title: "Purchase limit",
		meaning: "With this order the customer would have more units of a SKU, bought or reserved, than one customer may buy. Nothing was reserved.",
		remedy:  "Order at most exceeded.limit - exceeded.had units of the SKU, or cancel another order.",
		example: Problem{
			Detail:   "With this order the customer would have more units of a SKU than one customer may buy. Nothing was reserved.",
			Exceeded: &Exceeded{SKU: "ticket", Limit: 4, Had: 3},
		},
	},
	TypeOpenOrdersLimit: {
		status: http.StatusConflict, title: "Open orders limit",
		meaning: "The customer has as many open orders as one customer may have. Nothing was reserved.",
		remedy:  "Pay or cancel an order, or wait until one expires.",
		example: Problem{
			Detail:   "The customer has as many open orders as one customer may have. Nothing was reserved.",
			Exceeded: &Exceeded{Limit: 5, Had: 5},
		},
	},
	TypeOrderStateConflict: {
		status: http.StatusConflict, title: "Order state conflict",
		meaning: "The order is in a state that does not allow the operation: not placed yet, paid, cancelled, expired or rejected. Nothing happened. A payment for an order that is EXPIRED took nothing.",
		remedy:  "Look at state. A QUEUED order is about to be placed or rejected: ask for it until it is, and then try again, with the same key if there was one. Any other order stays as it is; place a new one.",
		example: Problem{Detail: "The order is EXPIRED, which does not allow this.", OrderID: exampleOrder, State: "EXPIRED"},
	},
	TypeRequestInFlight: {
		status: http.StatusConflict, title: "Request in flight", retry: true,
		meaning: "A request with the same Idempotency-Key was at work until the time of this one was up. This one did nothing; the other may yet succeed.",
		remedy:  "Send the same request with the same key again, after as many seconds as Retry-After says.",
		example: Problem{Detail: "A request with the same Idempotency-Key was at work until the time of this one was up. This one did nothing."},
	},
	TypeIdempotencyKeyReused: {
		status: http.StatusUnprocessableEntity, title: "Idempotency key reused",
		meaning: "The Idempotency-Key was used for the same path with another payload less than 24 hours ago. Nothing happened.",
		remedy:  "Use a new key for every new request, and the same one only to repeat a request as it was.",
		example: Problem{Detail: "The Idempotency-Key was used with another payload. Nothing happened."},
	},
	TypeSaturated: {
		status: http.StatusTooManyRequests, title: "Saturated", retry: true,
		meaning: "As many orders are being placed, by everybody, as may be at once. Nothing happened.",
		remedy:  "Try again after as many seconds as Retry-After says, and some more that you choose at random.",
		example: Problem{Detail: "As many orders are being placed as may be at once. Nothing happened."},
	},
	TypeRateLimited: {
		status: http.StatusTooManyRequests, title: "Rate limited", retry: true,
		meaning: "The customer places or extends orders faster than one customer may. Nothing happened. Payments and cancellations are never limited.",
		remedy:  "Try again after as many seconds as Retry-After says. RateLimit tells in every answer what is left.",
		example: Problem{Detail: "The customer places or extends orders faster than one customer may. Nothing happened."},
	},
	TypeBusy: {
		status: http.StatusServiceUnavailable, title: "Busy", retry: true,
		meaning: "The request was still waiting for its turn when its time was up, or, with Prefer: wait=0, would have had to wait. Nothing happened.",
		remedy:  "Try again after as many seconds as Retry-After says; or send Prefer: respond-async, and the order is queued.",
		example: Problem{Detail: busyDetail},
	},
	TypeStoreUnavailable: {
		status: http.StatusServiceUnavailable, title: "Store unavailable", retry: true,
		meaning: "A store that the request needs does not answer. Nothing happened. What concerns timers may have.",
		remedy:  "Try again after as many seconds as Retry-After says.",
		example: Problem{Detail: "A store that the request needs does not answer. Nothing happened."},
	},
	TypeOutcomeUnknown: {
		status: http.StatusServiceUnavailable, title: "Outcome unknown", retry: true,
		meaning: "The store did not confirm the request, and could not be asked about it. It may have been carried out.",
		remedy:  "With an Idempotency-Key, send the same request again: it is carried out once. Otherwise read the order that order_id names.",
		example: Problem{Detail: "The store did not confirm the request, which may have been carried out.", OrderID: exampleOrder},
	},
	TypeTooManyListeners: {
		status: http.StatusServiceUnavailable, title: "Too many listeners", retry: true,
		meaning: "As many clients follow the events of this instance, or of this customer there, as may.",
		remedy:  "End streams that nobody needs; or try again after as many seconds as Retry-After says, and another instance may answer.",
		example: Problem{Detail: "As many clients follow events here as may."},
	},
	TypeDraining: {
		status: http.StatusServiceUnavailable, title: "Draining", retry: true,
		meaning: "The instance is about to stop. An order that was waiting for units did not get any; nothing happened.",
		remedy:  "Send the request again, and another instance answers it.",
		example: Problem{Detail: "The instance is about to stop."},
	},
}
