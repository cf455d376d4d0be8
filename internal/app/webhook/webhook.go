// Package webhook delivers ledger entries to a URL: each at least once, and those of a SKU in their order.
//
// # Model
//
// The ledger is the outbox. An order writes its entries in its own transaction, so an entry exists if and only if the units have
// moved. A row per SKU remembers up to which entry a receiver has confirmed. The leader gives each SKU that has later entries a
// timer of [package timeout]. The handler of that timer is [Sender.Handle]. It sends the entries by POST, and stores each confirmation.
//
// # Guarantees
//
// Each is the name of a test.
//
//   - Each committed entry is delivered at least once, although the receiver fails and an instance is paused or killed
//     (TestWebhookGetsEachEntry).
//   - The first delivery of an entry comes after that of each earlier entry of its SKU. A receiver that drops the ids that it has, by
//     SKU, sees the order of the ledger (TestWebhookGetsEachEntry).
//   - A receiver that refuses a SKU at once delays no other one (TestWebhookThatFailsForOneSKU).
//   - After a day of failures in a row (TestFailureAfterASuccessCountsNoAttempt) the timer of the SKU is dead. Its entries wait
//     until an operator redrives it. Command shop timers shows it with the last error (TestWebhookThatFailsForOneSKU).
//   - A clock of the database that is set back delays a delivery by ten minutes at most (TestClockSetBackDelaysNoDelivery).
//   - The signature is that of Standard Webhooks, so its libraries verify it.
//
// # Not guaranteed
//
// One delivery per entry. A lost response, a late one, or a sender that was paused leads to another delivery, also after later entries.
// A bound of the delay: 16 SKUs share a call of the handler, and a receiver that hangs delays all of them by 10 s per attempt.
// Of orders that move no units, such as a queued order that is rejected, the ledger has no entry.
package webhook

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

// Timer is the kind of timers of deliveries. Their ids are SKUs.
const Timer = "webhook"

const (
	perMessage = 100              // entries
	turn       = 2 * time.Second  // of a SKU; afterwards another one gets the place
	patience   = 10 * time.Second // for a response
	pause      = time.Second      // after a failure that follows a success
	minSecret  = 24               // bytes, as Standard Webhooks has it
)

// Options are those of the timers. The pause after a failure grows to 5 min at most, half of it on average, so the last attempt is
// made after a day.
func Options() timeout.Options {
	return timeout.Options{Batch: 16, Attempts: 580, Backoff: time.Second, Poll: time.Second}
}

// Ledger has the entries, and remembers which are delivered.
type Ledger interface {
	// Undelivered returns the entries of a SKU that are not delivered, in their order, and at most limit.
	Undelivered(ctx context.Context, sku string, limit int) ([]stock.Entry, error)

	// Delivered remembers that the entries of a SKU are delivered up to the one with this id.
	Delivered(ctx context.Context, sku string, id int64) error
}

// message is the body of a request.
type message struct {
	Type      string    `json:"type"` // stock.moved
	Timestamp time.Time `json:"timestamp"`
	Data      data      `json:"data"`
}

type data struct {
	SKU     string        `json:"sku"`
	Entries []stock.Entry `json:"entries"`
}

// Sender sends entries to one URL.
type Sender struct {
	ledger Ledger
	url    string
	signer *webhooks.Webhook
	client http.Client
}

// Validate returns what is wrong with a URL and a secret, or nil.
func Validate(rawURL, secret string) error {
	u, err := url.Parse(rawURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("want an address that begins with http:// or https://")
	}
	_, err = newSigner(secret)
	return err
}

func newSigner(secret string) (*webhooks.Webhook, error) {
	text, ok := strings.CutPrefix(secret, "whsec_")
	key, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(key) < minSecret {
		return nil, fmt.Errorf("want a secret of whsec_ and the base64 of at least %d random bytes, as of: echo whsec_$(openssl rand -base64 32)", minSecret)
	}
	return webhooks.NewWebhookRaw(key)
}

// New returns a sender. Close idle connections with [Sender.Close].
func New(ledger Ledger, rawURL, secret string) (*Sender, error) {
	signer, err := newSigner(secret)
	if err != nil {
		return nil, err
	}
	return &Sender{ledger: ledger, url: rawURL, signer: signer, client: http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute},
		Timeout:       patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close closes idle connections.
func (s *Sender) Close() { s.client.CloseIdleConnections() }

// Handle is the handler of the timers. It sends what each SKU of the batch has not delivered, one SKU beside the other.
func (s *Sender) Handle(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
	outcomes := make([]timeout.Outcome, len(batch))
	errs := make([]error, len(batch))
	var wg sync.WaitGroup
	for i, f := range batch {
		wg.Go(func() { outcomes[i], errs[i] = s.deliver(ctx, f.ID) })
	}
	wg.Wait()
	return outcomes, errors.Join(errs...)
}

// deliver sends what a SKU has not delivered. An error is one of the ledger, or the end of ctx, and not the fault of the receiver.
func (s *Sender) deliver(ctx context.Context, sku string) (timeout.Outcome, error) {
	sent := 0
	for began := time.Now(); time.Since(began) < turn; sent++ {
		entries, err := s.ledger.Undelivered(ctx, sku, perMessage)
		switch {
		case err != nil:
			return timeout.Outcome{}, fmt.Errorf("%w: %w", timeout.ErrUnavailable, err)
		case len(entries) == 0:
			return timeout.Done(), nil
		}
		if err := s.post(ctx, sku, entries); ctx.Err() != nil {
			return timeout.Outcome{}, fmt.Errorf("%w: %w", timeout.ErrUnavailable, context.Cause(ctx))
		} else if err != nil && sent > 0 {
			return timeout.Again(pause), nil // the attempts count failures in a row
		} else if err != nil {
			return timeout.Retry(0, err), nil
		}
		if err := s.ledger.Delivered(ctx, sku, entries[len(entries)-1].ID); err != nil {
			return timeout.Outcome{}, fmt.Errorf("%w: %w", timeout.ErrUnavailable, err)
		}
	}
	return timeout.Again(0), nil
}

// post sends entries and waits for a response, which confirms them if its status is 2xx.
func (s *Sender) post(ctx context.Context, sku string, entries []stock.Entry) error {
	now := time.Now().UTC()
	body, err := json.Marshal(message{"stock.moved", now, data{sku, entries}})
	if err != nil {
		return err
	}
	// A message with further entries is another message, so the id has the last one.
	id := sku + ":" + strconv.FormatInt(entries[0].ID, 10) + "-" + strconv.FormatInt(entries[len(entries)-1].ID, 10)
	signature, err := s.signer.Sign(id, now, body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(webhooks.HeaderWebhookID, id)
	req.Header.Set(webhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(webhooks.HeaderWebhookSignature, signature)
	resp, err := s.client.Do(req)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err // without the URL, which may have a secret
	}
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)); err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the receiver of message %s responds with %s", id, resp.Status)
	}
	return nil
}
