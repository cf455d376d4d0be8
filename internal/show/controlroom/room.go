package controlroom

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/show/buyers"
	"example.com/shop/internal/show/fleet"
	"example.com/shop/internal/sqlstore"
)

// startTimeout is how long an instance may take to serve.
const startTimeout = 2 * time.Minute

// Config says what a room has, and where it listens.
type Config struct {
	Executable string // that instances are started from
	Instances  int
	Stores     fleet.StoresConfig
	Listen     string    // HOST:PORT, of loopback
	Out        io.Writer // for the address of the page
}

// Room is a set of instances with their stores.
type Room struct {
	Config

	token   string
	address string                // HOST:PORT on which it listens
	stores  *fleet.Stores         // those of Config, as they were opened
	redis   redis.UniversalClient // nil: not of this run, or a group of servers
	books   *sqlstore.Store
	members []*member
	probe   probe
	tasks   sync.WaitGroup

	mu       sync.Mutex
	version  uint64        // guarded by mu; grows with each change
	changed  chan struct{} // guarded by mu; closed at the next change
	redisIs  health        // guarded by mu
	database health        // guarded by mu
	sale     *sale         // guarded by mu; the latest one
	lab      *labRun       // guarded by mu; the latest one
	isLate   bool          // guarded by mu; a late holder is there

	redisNow, databaseNow measured // guarded by mu

	placing sync.Mutex   // held while unpaid orders are placed
	unpaid  *fleet.Fleet // the instance that places them; written with placing and mu, read with either
}

// health is what a store does for all instances.
type health string

const (
	healthy health = "up"
	paused  health = "paused"
	slow    health = "slow"
)

// Validate says what is wrong with c.
func (c Config) Validate() error {
	var errs []error
	if host, _, err := net.SplitHostPort(c.Listen); err != nil || !net.ParseIP(host).IsLoopback() {
		errs = append(errs, fmt.Errorf("--listen %s: want an address of loopback, such as 127.0.0.1:8090, as whoever reaches the control room can stop what runs there", c.Listen))
	}
	if c.Instances < 1 || c.Instances > 32 {
		errs = append(errs, fmt.Errorf("--instances %d: want 1 to 32", c.Instances))
	}
	return errors.Join(errs...)
}

// Run opens a room and prints the address of its page. It returns when ctx ends, and everything it started has ended then.
func Run(ctx context.Context, c Config) (err error) {
	if err := c.Validate(); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("--listen %s: %w; port 0 takes a free one", c.Listen, err)
	}
	defer listener.Close()
	ctx, stop := context.WithCancel(ctx)
	r := &Room{Config: c, token: rand.Text(), address: listener.Addr().String(), changed: make(chan struct{}), redisIs: healthy, database: healthy}
	defer func() { err = errors.Join(err, r.close()) }()
	defer r.tasks.Wait()
	defer stop()
	if err := r.open(ctx); err != nil {
		return err
	}
	handler, err := r.handler(ctx)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { server.Close() })
	audit := ""
	if r.Stores.Database == "" { // otherwise the user has named it
		audit = fmt.Sprintf("Audit its books in another terminal: shop audit --database '%s'\n", r.stores.Database)
	}
	fmt.Fprintf(c.Out, "Control room: http://%s/#token=%s\n%sCtrl-C ends it and all %d instances.\n", r.address, r.token, audit, len(r.members))
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// open starts stores and instances.
func (r *Room) open(ctx context.Context) (err error) {
	if r.stores, err = fleet.OpenStores(ctx, r.Stores); err != nil {
		return err
	}
	if r.stores.Own {
		if r.redis, err = redisclient.New(r.stores.Redis); err != nil {
			return err
		}
	}
	for i := range r.Instances {
		m := &member{name: fmt.Sprintf("shop-%d", i+1), number: i + 1}
		r.members = append(r.members, m)
		if err := m.connect(ctx, r.stores); err != nil {
			return err
		}
		if err := r.start(ctx, m); err != nil {
			return err
		}
	}
	if r.books, err = sqlstore.Open(ctx, sqlstore.Config{URL: r.stores.Database, Instance: "room", Connections: 2, Access: sqlstore.AccessRead}); err != nil {
		return err
	}
	if err := r.openProbe(ctx); err != nil {
		return err
	}
	r.tasks.Go(func() { r.measure(ctx) })
	r.tasks.Go(func() { r.measureStores(ctx) })
	return nil
}

// connect puts proxies between m and the stores.
func (m *member) connect(ctx context.Context, s *fleet.Stores) (err error) {
	m.env = *s
	if m.redis, m.env.Redis, err = fleet.Between(ctx, s.Redis); err != nil {
		return err
	}
	m.database, m.env.Database, err = fleet.Between(ctx, s.Database)
	return err
}

// lines returns all that have proxies: the members and the probe.
func (r *Room) lines() []*member {
	return slices.Concat(r.members, []*member{&r.probe.member})
}

func (r *Room) close() error {
	var errs []error
	for _, m := range r.lines() {
		if m.fleet != nil {
			errs = append(errs, m.fleet.Close())
		}
		for _, p := range []*testbed.Proxy{m.redis, m.database} {
			if p != nil {
				errs = append(errs, p.Close())
			}
		}
	}
	r.placing.Lock() // for a request that is still under way
	defer r.placing.Unlock()
	if r.unpaid != nil {
		errs = append(errs, r.unpaid.Close())
	}
	for _, s := range []*sqlstore.Store{r.books, r.probe.books} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	for _, c := range []redis.UniversalClient{r.redis, r.probe.rdb} {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	if r.stores != nil {
		errs = append(errs, r.stores.Close())
	}
	return errors.Join(errs...)
}

// notify notifies the observers of a change. It requires mu.
func (r *Room) notify() {
	r.version++
	close(r.changed)
	r.changed = make(chan struct{})
}

// urls returns the base URLs of the instances that serve, or of all if none does: their customers are cut off then.
func (r *Room) urls() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var serving, all []string
	for _, m := range r.members {
		all = append(all, m.url)
		if m.state == running {
			serving = append(serving, m.url)
		}
	}
	if len(serving) == 0 {
		return all
	}
	return serving
}

// newShop returns the service as customers see it.
func (r *Room) newShop(customers int) *buyers.Shop {
	s := buyers.New(nil, customers)
	s.URLs = r.urls
	return s
}
