package httpapi

import (
	"net/http/httptest"
	"testing"
	"time"

	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
)

// What was rendered to be stored is the answer, unless the order is another one in the end.
func TestWhatWasRenderedIsTheAnswer(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	o := order.Order{ID: "o1", CustomerID: "c1", Status: order.Pending, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
	id, status, reason, created, expires := o, o, o, o, o
	id.ID, status.Status, reason.Reason = "o2", order.Queued, "why"
	created.CreatedAt, expires.ExpiresAt = now.Add(time.Second), now
	for name, c := range map[string]struct {
		order order.Order
		kept  bool
	}{
		"the same": {o, true}, "id": {id, false}, "status": {status, false}, "reason": {reason, false},
		"created": {created, false}, "expires": {expires, false},
	} {
		in := new(call)
		in.kept.Store(&rendered{o, idempotency.Answer{Status: 201, Location: "/there", Body: []byte("kept")}})
		w := httptest.NewRecorder()
		if err := in.placed(c.order).VisitPlaceOrderResponse(w); err != nil {
			t.Fatal(err)
		}
		if (w.Body.String() == "kept") != c.kept || w.Header().Get("Location") == "" || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v %s", name, w.Header(), w.Body)
		}
	}
}
