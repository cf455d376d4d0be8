package app

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"

	"example.com/shop/internal/app/webhook"
	"example.com/shop/internal/dlock/etcdlock"
	"example.com/shop/internal/platform/storeurl"
	"example.com/shop/internal/platform/zookeeper"
	"example.com/shop/internal/timeout"
)

// The addresses and the database of an instance that was given none.
const (
	DefaultListen      = "127.0.0.1:8080"
	DefaultAdminListen = "127.0.0.1:8081" // of the operators' commands: an instance has no admin listener by default
	DefaultDatabase    = "sqlite:shop.db"
)

// Values of [Config.Auth].
const (
	AuthKeys = "keys" // every request needs an API key
	AuthNone = "none" // authentication disabled
)

// Config says what one instance is. Each field is the flag of `shop serve` with the same name.
type Config struct {
	Listen        string // HOST:PORT
	AdminListen   string // loopback HOST:PORT; empty: no admin listener
	MetricsListen string // HOST:PORT; empty: none
	Advertise     string // HOST:PORT at which others reach the instance; empty: that of the listener
	Instance      string // its name
	Database      string // URL
	Redis         string // URL; empty: none
	Redlock       string // URLs with commas between them; empty: none
	ZooKeeper     string // HOST:PORT,...; empty: none
	ZooKeeperAuth string // USER:PASSWORD; empty: none
	Etcd          string // HOST:PORT,...; empty: none
	OrderTTL      time.Duration
	Retention     time.Duration // of orders that are final; 0: for ever
	KeyRetention  time.Duration // of the responses to requests with a key
	Permits       int           // orders in flight over all instances; 0: any number
	CustomerRate  int           // orders per second and customer; 0: any number
	MaxOpenOrders int64         // unpaid orders per customer; 0: any number
	Auth          string        // AuthKeys or AuthNone
	Webhook       string        // URL that gets the ledger; empty: none
	WebhookSecret string        // whsec_ and base64
	Canary        bool
	Partition     string
	LogLevel      slog.Level

	Version  string // of the program
	TextLogs bool   // logs are for people, not for programs
}

// Validate returns what is wrong with the configuration, in the words of the flags.
func (c Config) Validate() error {
	var bad []error
	bad = append(bad, validAddress("listen", c.Listen), validAdvertise(c.Advertise), validAdmin(c.AdminListen), validMetrics(c.MetricsListen))
	if len(c.Instance) > 64 || strings.ContainsFunc(c.Instance, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsGraphic(r) || r == ' ' }) {
		bad = append(bad, fmt.Errorf("--instance %q: want 1 to 64 printable ASCII characters without spaces", c.Instance))
	}
	if err := validOrderTTL(c.OrderTTL); err != nil {
		bad = append(bad, fmt.Errorf("--%w", err))
	}
	bad = append(bad, within("--permits", c.Permits, 0, 1_000_000), within("--customer-rate", c.CustomerRate, 0, 1_000_000))
	if c.MaxOpenOrders < 0 {
		bad = append(bad, fmt.Errorf("--max-open-orders %d: want 0 or more", c.MaxOpenOrders))
	}
	if c.KeyRetention < time.Hour {
		bad = append(bad, fmt.Errorf("--key-retention %v: want at least 1h, in which clients send a request again", c.KeyRetention))
	}
	if c.Retention != 0 && c.Retention < c.KeyRetention {
		bad = append(bad, fmt.Errorf("--retention %v: want 0 to keep orders for ever, or at least --key-retention, %v", c.Retention, c.KeyRetention))
	}
	if c.Auth != AuthKeys && c.Auth != AuthNone {
		bad = append(bad, fmt.Errorf("--auth %q: want keys or none", c.Auth))
	}
	if c.Webhook != "" || c.WebhookSecret != "" {
		if err := webhook.Validate(c.Webhook, c.WebhookSecret); err != nil {
			bad = append(bad, fmt.Errorf("--webhook and --webhook-secret: %w", err))
		}
	}
	if err := (timeout.Config{Partition: c.Partition}).Validate(); err != nil {
		bad = append(bad, fmt.Errorf("--partition %q: want 1 to 32 letters, digits, dots, dashes and underscores", c.Partition))
	}
	if c.Canary && c.Partition != timeout.Base {
		bad = append(bad, errors.New("--canary and --partition exclude each other: a canary expires nothing, so its partition would have no consumer"))
	}
	bad = append(bad, c.ValidateStores())
	return errors.Join(bad...)
}

// ValidateStores returns what is wrong with the form of the stores. It connects to nothing.
func (c Config) ValidateStores() error {
	return errors.Join(ValidDatabase(c.Database), ValidRedis(c.Redis), validRedlock(c.Redlock),
		optional("zookeeper", c.ZooKeeper, func(address string) error { _, err := zookeeper.Address(address); return err }),
		validZooKeeperAuth(c.ZooKeeperAuth, c.ZooKeeper), optional("etcd", c.Etcd, etcdlock.ValidAddress))
}

// redacted returns a URL without its password, or none.
func redacted(rawURL string) string { return cmp.Or(storeurl.Redacted(rawURL), "none") }
