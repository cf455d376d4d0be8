package testbedtest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"example.com/shop/internal/platform/testbed"
)

// The password of the users of servers that demand one has characters that a URL has to escape.
const (
	Password        = "p@ss/w:rd?"         //nolint:gosec // of servers of tests
	EscapedPassword = "p%40ss%2Fw%3Ard%3F" //nolint:gosec // of servers of tests
)

// SecureMariaDB starts a server that demands TLS, and returns its HOST:PORT/DB. The user shop needs no certificate, the
// user certified does.
func SecureMariaDB(t testing.TB, c Certificates) string {
	t.Helper()
	server := StartMariaDB(t, testbed.MariaDBConfig{Vars: map[string]string{"ssl_ca": c.CA, "ssl_cert": c.Cert, "ssl_key": c.Key}})
	db := OpenSQL(t, server.URL())
	for _, statement := range []string{
		"CREATE USER shop IDENTIFIED BY '" + Password + "'", "GRANT ALL ON shop.* TO shop",
		"CREATE USER certified IDENTIFIED BY '" + Password + "' REQUIRE X509", "GRANT ALL ON shop.* TO certified",
		"SET GLOBAL require_secure_transport = ON",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return server.Addr() + "/" + testbed.DefaultDatabase
}

// SecurePostgres is SecureMariaDB on PostgreSQL.
func SecurePostgres(t testing.TB, c Certificates) string {
	t.Helper()
	server := StartPostgres(t, testbed.PostgresConfig{})
	db := OpenSQL(t, server.URL())
	for _, statement := range []string{
		"SET password_encryption = 'scram-sha-256'", "ALTER ROLE shop PASSWORD ?", "CREATE ROLE certified LOGIN PASSWORD ?",
		"GRANT CREATE ON SCHEMA public TO certified", "ALTER SYSTEM SET ssl = on", "ALTER SYSTEM SET ssl_ca_file = 'ca.pem'",
		"ALTER SYSTEM SET ssl_cert_file = 'cert.pem'", "ALTER SYSTEM SET ssl_key_file = 'key.pem'",
	} {
		if _, err := db.ExecContext(t.Context(), statement, slices.Repeat([]any{Password}, strings.Count(statement, "?"))...); err != nil {
			t.Fatal(err)
		}
	}
	rules := "host postgres shop all trust\nhostssl shop shop all scram-sha-256\nhostssl shop certified all scram-sha-256 clientcert=verify-ca\n"
	errs := []error{server.WriteFile("pg_hba.conf", []byte(rules))}
	for name, from := range map[string]string{"ca.pem": c.CA, "cert.pem": c.Cert, "key.pem": c.Key} {
		text, err := os.ReadFile(from)
		errs = append(errs, err, server.WriteFile(name, text))
	}
	if err := errors.Join(append(errs, server.Restart(t.Context()))...); err != nil {
		t.Fatal(err)
	}
	return server.Addr() + "/" + testbed.DefaultDatabase
}

// SecureRedis starts a server that demands TLS, a certificate, and the user shop; args are its further options. It
// returns its HOST:PORT.
func SecureRedis(t testing.TB, c Certificates, args ...string) string {
	t.Helper()
	server := StartRedis(t, testbed.RedisConfig{Args: args})
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 1}) // its connection outlives the port
	defer rdb.Close()
	_, port, err := net.SplitHostPort(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]any{
		{"CONFIG", "SET", "port", "0"},
		{"CONFIG", "SET", "tls-ca-cert-file", c.CA, "tls-cert-file", c.Cert, "tls-key-file", c.Key, "tls-cluster", "yes"},
		{"CONFIG", "SET", "tls-port", port},
		{"ACL", "SETUSER", "shop", "on", ">" + Password, "~*", "&*", "+@all"},
		{"ACL", "SETUSER", "default", "off"},
	} {
		if err := rdb.Do(t.Context(), command...).Err(); err != nil {
			t.Fatal(fmt.Errorf("%v: %w", command, err))
		}
	}
	return server.Addr()
}

// SecureSentinel starts a sentinel with a port that demands TLS and a certificate, and returns the HOST:PORT of that. It
// watches a SecureRedis with the same certificates, under the name shop.
func SecureSentinel(t testing.TB, c Certificates, master string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(master)
	if err != nil {
		t.Fatal(err)
	}
	sentinel, address, err := testbed.StartLoneSentinel(t.Context(),
		"tls-ca-cert-file "+c.CA, "tls-cert-file "+c.Cert, "tls-key-file "+c.Key, "tls-replication yes",
		fmt.Sprintf("sentinel monitor shop %s %s 1", host, port),
		"sentinel auth-user shop shop", fmt.Sprintf("sentinel auth-pass shop %q", Password))
	started(t, sentinel, err)
	return address
}

// SecureEtcd starts a server that demands TLS, a certificate, and a user, and returns its HOST:PORT. The user shop may
// use the keys below shop only.
func SecureEtcd(t testing.TB, c Certificates) string {
	t.Helper()
	address := freeAddress(t)
	server := StartEtcd(t, testbed.EtcdConfig{Secure: address, Args: []string{
		"--client-cert-auth", "--trusted-ca-file", c.CA, "--cert-file", c.Cert, "--key-file", c.Key,
	}})
	admin, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Addr()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	ctx := t.Context()
	for _, step := range []func() error{
		func() error { return second(admin.UserAdd(ctx, "root", Password)) },
		func() error { return second(admin.UserGrantRole(ctx, "root", "root")) },
		func() error { return second(admin.RoleAdd(ctx, "shop")) },
		func() error {
			return second(admin.RoleGrantPermission(ctx, "shop", "shop/", "shop0", clientv3.PermissionType(clientv3.PermReadWrite)))
		},
		func() error { return second(admin.UserAdd(ctx, "shop", Password)) },
		func() error { return second(admin.UserGrantRole(ctx, "shop", "shop")) },
		func() error { return second(admin.AuthEnable(ctx)) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return address
}

func second[T any](_ T, err error) error { return err }

// SecureZooKeeper starts a server with a port that demands TLS and a certificate, and returns the HOST:PORT of that.
func SecureZooKeeper(t testing.TB, c Certificates) string {
	t.Helper()
	address := freeAddress(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	StartZooKeeper(t, testbed.ZooKeeperConfig{Settings: []string{
		"secureClientPort=" + port, "secureClientPortAddress=" + host,
		"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory", "ssl.clientAuth=need",
		"ssl.keyStore.location=" + c.pair(t), "ssl.keyStore.type=PEM", "ssl.trustStore.location=" + c.CA, "ssl.trustStore.type=PEM",
	}})
	return address
}

func freeAddress(t testing.TB) string {
	t.Helper()
	address, err := testbed.FreeAddress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return address
}
