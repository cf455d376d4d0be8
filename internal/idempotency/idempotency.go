// Package idempotency defines how a request takes effect once, however often it arrives.
//
// A client that receives no response cannot know whether its request was carried out. It sends the request again
// with the same key (Idempotency-Key, draft-ietf-httpapi-idempotency-key-header). The response is stored with the
// key in the transaction that has the effect: either both exist or neither does, whatever crashes. The unique key
// lets only one of two duplicates commit, wherever they arrive. The other duplicate finds the stored response and
// returns it, byte for byte.
//
// A response that decides nothing (429, 503) is never stored: the same request may succeed later. A final refusal
// (sold out) is stored, in a transaction of its own. If the object of the request is in a final state, the refusal
// is not stored, because the object gives the same response again. Requests without an effect must not fill the
// store.
//
// Nothing is stored before the work begins. So a duplicate of a request in flight does the same work up to the commit.
// There it waits for the first transaction, and returns its response.
package idempotency

import (
	"encoding/json"
	"errors"
	"fmt"
)

// MaxKey is the largest length of a key in bytes.
const MaxKey = 255

// Outcomes of a request with a key.
var (
	// ErrReused says that the key was used for another payload. The request had no effect.
	ErrReused = errors.New("idempotency: the key was used for another request")

	// ErrInFlight says that an equal request was still at work when the deadline of this
	// one came. This one had no effect.
	ErrInFlight = errors.New("idempotency: an equal request is at work")
)

// Request is a request that has a key.
type Request struct {
	Scope Scope
	Hash  [32]byte // of the payload: another one with the same key is refused
}

// Scope is where a key is unique.
type Scope struct {
	Customer string // whose key it is; empty when nobody is asked
	Route    string // method and path, with the ids that are in it; and whether an admin asks
	Key      string
}

// Answer is what was answered: the result of a request that was carried out, or the response that refused it.
type Answer struct {
	Status int // 0: Body is the result in JSON, from which the same response can be made again
	Body   []byte
}

// Result returns the answer to a request that was carried out.
func Result(result any) (Answer, error) {
	body, err := json.Marshal(result)
	return Answer{Body: body}, err
}

// AnsweredError is the error of an operation that was not carried out because the answer of an
// earlier request with the same key is stored.
type AnsweredError struct{ Answer Answer }

// Error implements error.
func (e *AnsweredError) Error() string {
	return fmt.Sprintf("idempotency: answered before with status %d", e.Answer.Status)
}
