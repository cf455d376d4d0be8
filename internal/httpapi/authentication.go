package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/identity"
)

// Identity authenticates callers by API key; [*identity.Service] implements it.
type Identity interface {
	// Authenticate returns the caller of the key text. It fails with [identity.ErrUnauthenticated] or
	// [identity.ErrUnavailable].
	Authenticate(ctx context.Context, text string) (identity.Caller, error)

	// Watch calls changed when the key with the prefix may have become invalid, until stop is called.
	Watch(prefix string, changed func()) (stop func())
}

var _ Identity = (*identity.Service)(nil)

// access is the group of callers that may use an operation. Without security requirements in the specification, the
// group is admins.
type access int

const (
	forAdmins access = iota
	forCustomers
	forAll
)

// identify authenticates the caller, and refuses callers that may not use the operation.
func (a *api) identify(c *gin.Context) {
	_, in := requestOf(c)
	if a.Identity == nil || in.rule.access == forAll {
		return
	}
	caller, err := a.authenticate(c.Request.Context(), c.Request.Header)
	switch {
	case errors.Is(err, identity.ErrUnauthenticated), err == nil && !caller.Admin && caller.Customer == "":
		a.refuse(c, &refusal{Problem: newProblem(TypeUnauthenticated, "The API key is missing or invalid."), cause: err})
	case err != nil:
		a.refuse(c, err)
	case caller.Admin, in.rule.access == forCustomers:
		in.caller = caller
	default:
		a.refuse(c, refuse(TypeForbidden, "This operation needs the key of an admin."))
	}
}

// authenticate reads the key (RFC 6750) and returns its caller.
func (a *api) authenticate(ctx context.Context, h http.Header) (identity.Caller, error) {
	fields := h.Values("Authorization")
	if len(fields) != 1 {
		return identity.Caller{}, identity.ErrUnauthenticated
	}
	scheme, key, _ := strings.Cut(fields[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return identity.Caller{}, identity.ErrUnauthenticated
	}
	return a.Identity.Authenticate(ctx, strings.Trim(key, " "))
}
