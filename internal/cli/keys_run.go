package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/identity"
)

// keysPage is how many keys are read at once.
const keysPage = 1000

// keyJSON is a key as --json prints it.
type keyJSON struct {
	Key       string         `json:"key,omitempty"` // with its secret, when it has just been made
	Prefix    string         `json:"prefix"`
	Customer  string         `json:"customer_id,omitempty"`
	Admin     bool           `json:"admin"`
	Name      string         `json:"name,omitempty"`
	State     identity.State `json:"state"`
	CreatedAt time.Time      `json:"created_at"`
	ExpiresAt time.Time      `json:"expires_at,omitzero"`
	RevokedAt time.Time      `json:"revoked_at,omitzero"`
}

func inJSON(text string, k identity.Key) keyJSON {
	return keyJSON{
		Key: text, Prefix: k.Prefix, Customer: k.Customer, Admin: k.Admin, Name: k.Name, State: k.State,
		CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt, RevokedAt: k.RevokedAt,
	}
}

// create makes a key. Its text is all there is on stdout, so that it can be piped to where
// secrets are kept.
func (k *keysCall) create(ctx context.Context) error {
	text, made, err := k.service.Create(ctx, k.key)
	if err != nil {
		return err
	}
	if k.json {
		err = k.print(inJSON(text, made))
	} else {
		_, err = fmt.Fprintln(k.p.Stdout, text)
	}
	if err != nil {
		return fmt.Errorf("the key %s was created and could not be shown: revoke it with shop keys revoke %s: %w", made.Prefix, made.Prefix, err)
	}
	if !k.json {
		fmt.Fprintf(k.p.Stderr, "The key %s is in %s, for %s, %s. It is not shown again; send it as Authorization: Bearer KEY.\n",
			made.Prefix, k.store.Address(), holder(made), until(made))
	}
	return nil
}

func (k *keysCall) list(ctx context.Context) error {
	var all []identity.Key
	for after := ""; ; after = all[len(all)-1].Prefix {
		page, err := k.service.List(ctx, after, keysPage)
		if err != nil {
			return err
		}
		all = append(all, page...)
		if len(page) < keysPage {
			break
		}
	}
	slices.SortStableFunc(all, func(a, b identity.Key) int { return cmp.Compare(a.CreatedAt.UnixMicro(), b.CreatedAt.UnixMicro()) })
	if k.json {
		keys := make([]keyJSON, len(all))
		for i, each := range all {
			keys[i] = inJSON("", each)
		}
		return k.print(struct {
			Keys []keyJSON `json:"keys"`
		}{keys})
	}
	w := tabwriter.NewWriter(k.p.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PREFIX\tFOR\tSTATE\tCREATED\tEXPIRES\tREVOKED\tNAME")
	for _, each := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", each.Prefix, holder(each), each.State,
			moment(each.CreatedAt), moment(each.ExpiresAt), moment(each.RevokedAt), oneLine(each.Name, 64))
	}
	return w.Flush()
}

func (k *keysCall) revoke(ctx context.Context) error {
	revoked, err := k.service.Revoke(ctx, k.prefix)
	if err != nil {
		return err
	}
	if k.redis != "" {
		if err := app.NotifyRevoked(ctx, k.redis, revoked.Prefix); err != nil {
			fmt.Fprintf(k.p.Stderr, "The key is revoked, but the instances were not notified: %v\n", err)
		}
	}
	if k.json {
		return k.print(inJSON("", revoked))
	}
	_, err = fmt.Fprintf(k.p.Stdout, "%s was revoked at %s; every instance refuses it within %s\n",
		revoked.Prefix, moment(revoked.RevokedAt), identity.Keep)
	return err
}

func (k *keysCall) print(v any) error { return printIndented(k.p.Stdout, v) }

// holder says what a key may do.
func holder(k identity.Key) string {
	var parts []string
	if k.Customer != "" {
		parts = append(parts, "customer "+k.Customer)
	}
	if k.Admin {
		parts = append(parts, "admin")
	}
	return strings.Join(parts, ", ")
}

func until(k identity.Key) string {
	if k.ExpiresAt.IsZero() {
		return "without expiry"
	}
	return "until " + moment(k.ExpiresAt)
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
