package lab

import (
	"context"
	"fmt"
	"strings"
	"time"

	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/stock"
)

// theater draws several scenes of one lab into one picture. Each scene is drawn from its own beginning, so that the scenes lie below
// each other.
type theater struct {
	*stores

	picture *Picture
	zero    time.Time // when the first scene began
}

// scene is a variant of a lab, such as fenced: processes with leases each order a unit of one SKU.
type scene struct {
	*theater

	name   string
	sku    string
	update stock.Update
	began  time.Time
	grants grants // of the lock of sku
}

// theater sets the picture of the run, for scenes to draw.
func (s *stores) theater(title string, legend Legend) *theater {
	return &theater{stores: s, picture: s.r.Draw(&Picture{Title: title, Legend: legend})}
}

// scene puts a new SKU on sale.
func (t *theater) scene(ctx context.Context, name string, update stock.Update, units int) *scene {
	c := &scene{theater: t, name: name, sku: strings.ReplaceAll(name, " ", "-"), update: update}
	strategy := map[stock.Update]string{stock.WriteBack: "redis-unfenced", stock.Fenced: "redis"}[update]
	t.stock(ctx, c.sku, strategy, units)
	return c
}

// step reports a step of the scene.
func (c *scene) step(format string, args ...any) {
	c.r.Step("%s: %s", c.name, fmt.Sprintf(format, args...))
}

// at is where the picture has a moment of the scene. The scene begins with the first one.
func (c *scene) at(t time.Time) time.Time {
	if c.began.IsZero() {
		c.began = t
		if c.zero.IsZero() {
			c.zero = t
		}
	}
	return t.Add(c.zero.Sub(c.began))
}

func (c *scene) row(name string) string { return c.name + ": " + name }

func (c *scene) span(row string, from, until time.Time, kind Kind, label string) {
	c.picture.Span(c.row(row), c.at(from), c.at(until), kind, label)
	c.picture.Later(c.row(row), c.began.Sub(c.zero))
}

func (c *scene) mark(row string, at time.Time, good bool, format string, args ...any) {
	c.picture.Mark(c.row(row), c.at(at), kindOf(good), fmt.Sprintf(format, args...))
	c.picture.Later(c.row(row), c.began.Sub(c.zero))
}

// pace lets some time pass, so that the picture separates the events before and after. Nothing depends on it.
func (c *scene) pace(ctx context.Context) {
	backoff.Sleep(ctx, time.Duration(c.r.Size(200, 350))*time.Millisecond)
}

// holder is an order worker with a lease.
type holder struct {
	*Process

	scene *scene
	name  string // such as A

	asked    time.Time // for the lease
	locked   Report
	read     Report
	done     Report
	released Report
}

// holder starts a process, which waits until it is to ask for the lease. stop are the points at which it stops then.
func (c *scene) holder(ctx context.Context, name, ttl, stop string, pairs ...string) *holder {
	own := []string{"name", c.row(name), "sku", c.sku, "update", fmt.Sprint(int(c.update)), "ttl", ttl, "stop", pointReady + "," + stop}
	return &holder{Process: c.r.ready(ctx, c.row(name), c.task(append(own, pairs...)...)), scene: c, name: name}
}

// asks lets the process ask for the lease.
func (h *holder) asks() {
	h.asked = time.Now()
	h.scene.at(h.asked)
	h.Continue()
}

// gets waits until the process has the lease, and then until it has read.
func (h *holder) gets(ctx context.Context) {
	h.locked = h.Until(ctx, pointLocked)
	h.scene.grants.add(h.token())
	h.read = h.Until(ctx, pointRead)
}

// acquires is asks and gets.
func (h *holder) acquires(ctx context.Context) {
	h.asks()
	h.gets(ctx)
}

// orders lets the process go on until its order has an outcome.
func (h *holder) orders(ctx context.Context) { h.done = h.To(ctx, pointDone) }

// releases waits until the process has released its lease.
func (h *holder) releases(ctx context.Context) { h.released = h.Until(ctx, pointReleased) }

// finishes is orders and releases.
func (h *holder) finishes(ctx context.Context) {
	h.orders(ctx)
	h.releases(ctx)
}

// token is the fencing token of the lease.
func (h *holder) token() string { return h.locked.Value }

// ordinal says which grant of the scene has the token.
func (h *holder) ordinal() string { return h.scene.grants.ordinal(h.token()) }

// holds draws how long the lease was valid. Textbook locks have no tokens.
func (h *holder) holds(until time.Time) {
	if h.token() == "0" {
		h.scene.span(h.name, h.locked.At, until, Holds, "locked")
		return
	}
	h.scene.span(h.name, h.locked.At, until, Holds, "token "+h.ordinal())
	h.scene.picture.Token(h.scene.row(h.name), h.token())
}

// draw draws how the process waited for its lease, how long the lease was valid, and what it wrote. expired is zero if the lease was
// valid to its end.
func (h *holder) draw(expired time.Time, good bool) { h.drawn("expired", expired, good) }

// drawn is draw for a lock that ended in another way.
func (h *holder) drawn(how string, gone time.Time, good bool) {
	c, end := h.scene, h.done.At
	if h.released.At.After(end) {
		end = h.released.At
	}
	if h.locked.At.Sub(h.asked) > 20*time.Millisecond {
		c.span(h.name, h.asked, h.locked.At, Waits, "waits")
	}
	if gone.IsZero() {
		h.holds(end)
	} else {
		h.holds(gone)
		c.span(h.name, gone, end, Stale, how)
	}
	c.mark(h.name, h.done.At, good, "%s writes: %s", h.name, h.done.Value)
}

// judge audits the SKU of the scene, and adds to the figures what was oversold.
func (c *scene) judge(ctx context.Context) stock.Audit {
	a := c.audit(ctx, c.sku)
	c.step("audit: %s for %s: %s", count(int(a.Accepted()), "accepted order"), count(int(a.Stocked), "unit"), verdict(a.Oversold()))
	c.r.Measure("oversold: "+c.name, float64(a.Oversold()), "units")
	return a
}
