package zkcluster_test

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/cluster/clustertest"
	"example.com/shop/internal/cluster/zkcluster"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestFirstOfANameCounts has several nodes of one name, as there are for a moment when
// instances join at the same time. Numbers wrap around.
func TestFirstOfANameCounts(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		addr := testbedtest.ZooKeeper(t)
		c, group := raw(t, addr), rand.Text()
		i := instance(t, session(t, addr), group, func(err error) { t.Error(err) })
		seen := clustertest.Follow(t, i.Members)
		seen.Until(t, "nobody", clustertest.Lists())
		for _, node := range []string{"second;0000000007", "first;0000000005", "third;0000000012"} {
			create(t, c, group, "small", node)
		}
		for _, node := range []string{"second;-2147483648", "third;-2147483647", "first;2147483647"} {
			create(t, c, group, "large", node)
		}
		seen.Until(t, "the first of each", func(v cluster.View, err error) bool {
			return clustertest.Lists("large", "small")(v, err) && v.Members[0].Address == "first" && v.Members[1].Address == "first"
		})
	})
}

// create makes the node of a member with an address and a number.
func create(t testing.TB, c *zk.Conn, group, name, node string) {
	t.Helper()
	address, number, _ := strings.Cut(node, ";")
	text := cluster.EncodeMember(cluster.Member{Name: name, Address: address, Started: time.Now()})
	path := prefix(group) + "/members/x-" + rand.Text() + ";" + text + ";" + number
	_, err := c.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	check(t, err)
}

// TestOwnOldNodeIsReplaced leaves a node of an instance behind, as a session does whose client took it for expired.
func TestOwnOldNodeIsReplaced(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		addr := testbedtest.ZooKeeper(t)
		c, group := raw(t, addr), rand.Text()
		i := instance(t, session(t, addr), group, func(error) {})
		p := clustertest.Join(t, i, cluster.Member{Name: "a", Address: "here"})
		dir := prefix(group) + "/members"
		node := children(t, c, dir)[0]
		_, rest, _ := strings.Cut(node, "-")
		old := dir + "/old-" + rest[:strings.LastIndex(rest, ";")] + ";-0000000001"
		_, err := c.Create(old, nil, 0, zk.WorldACL(zk.PermAll))
		check(t, err)
		check(t, c.Delete(dir+"/"+node, -1))
		clustertest.Wait(t, "one node, and another one", func() bool {
			now := children(t, c, dir)
			return len(now) == 1 && now[0] != node && dir+"/"+now[0] != old
		})
		if p.Err() != nil {
			t.Error(p.Err())
		}
		check(t, p.Leave(t.Context()))
		clustertest.Wait(t, "none", func() bool { return len(children(t, c, dir)) == 0 })
	})
}

// TestRefusedNameDisturbsNobody: who is refused has created nothing.
func TestRefusedNameDisturbsNobody(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		addr := testbedtest.ZooKeeper(t)
		c, group := raw(t, addr), rand.Text()
		i := instance(t, session(t, addr), group, func(error) {})
		clustertest.Join(t, i, cluster.Member{Name: "a", Address: "here"})
		_, before, err := c.Get(prefix(group) + "/members")
		check(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 5*ttl)
		defer cancel()
		if _, err := i.Join(ctx, cluster.Member{Name: "a", Address: "there"}); !errors.Is(err, cluster.ErrNameTaken) {
			t.Errorf("Join = %v", err)
		}
		_, after, err := c.Get(prefix(group) + "/members")
		check(t, err)
		if after.Version != before.Version || after.Cversion != before.Cversion {
			t.Errorf("%d nodes were created", after.Version-before.Version)
		}
	})
}

// TestContainersComeBack deletes the containers, as the servers do when they have been
// empty for a while.
func TestContainersComeBack(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		addr := testbedtest.ZooKeeper(t)
		c, group := raw(t, addr), rand.Text()
		i := store(t, session(t, addr), group, func(error) {})
		members := clustertest.Follow(t, i.Members)
		leaders := clustertest.Follow(t, func(ctx context.Context) iter.Seq2[cluster.Leader, error] { return i.Leaders(ctx, "e") })
		entries := clustertest.Follow(t, func(ctx context.Context) iter.Seq2[map[string]cluster.Entry, error] { return i.Entries(ctx, "k") })
		members.Until(t, "nobody", clustertest.Lists())
		leaders.Until(t, "nobody", clustertest.Leads(cluster.Leader{}))
		entries.Until(t, "nothing", func(all map[string]cluster.Entry, err error) bool { return err == nil && len(all) == 0 })
		for _, path := range []string{"/members", "/elections/e", "/elections", "/config", ""} {
			if err := c.Delete(prefix(group)+path, -1); err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNotEmpty) {
				t.Fatal(err) // the watcher may have made it again
			}
		}
		clustertest.Join(t, i, cluster.Member{Name: "a"})
		members.Until(t, "a", clustertest.Lists("a"))
		ctx, cancel := context.WithCancel(t.Context())
		var posting sync.WaitGroup
		l := cluster.Leader{Name: "a"}
		l.Fence.Token = 1
		posting.Go(func() {
			if err := i.Announce(ctx, "e", l); err != nil {
				t.Error(err)
			}
		})
		leaders.Until(t, "a", clustertest.Leads(l))
		cancel()
		posting.Wait()
		_, err := i.Write(t.Context(), "k", "v", 0)
		check(t, err)
		entries.Until(t, "k", func(all map[string]cluster.Entry, err error) bool {
			return err == nil && all["k"] == cluster.Entry{Text: "v", Version: 1}
		})
	})
}

// TestDeletedAnnouncementComesBack when somebody deletes it, and goes at the end.
func TestDeletedAnnouncementComesBack(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		addr := testbedtest.ZooKeeper(t)
		c, group := raw(t, addr), rand.Text()
		i := store(t, session(t, addr), group, func(error) {})
		dir := prefix(group) + "/elections/e"
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var posting sync.WaitGroup
		posting.Go(func() {
			if err := i.Announce(ctx, "e", cluster.Leader{Name: "a"}); err != nil {
				t.Error(err)
			}
		})
		for range 3 {
			var all []string
			clustertest.Wait(t, "announcement", func() bool {
				all = children(t, c, dir)
				return len(all) == 1
			})
			check(t, c.Delete(dir+"/"+all[0], -1))
		}
		clustertest.Wait(t, "announcement", func() bool { return len(children(t, c, dir)) == 1 })
		cancel()
		posting.Wait()
		if all := children(t, c, dir); len(all) > 0 {
			t.Errorf("afterwards there are %q", all)
		}
	})
}

// TestKeysAndNamesAreEscaped in the names of nodes.
func TestKeysAndNamesAreEscaped(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		addr := testbedtest.ZooKeeper(t)
		i := instance(t, session(t, addr), rand.Text(), func(error) {})
		for n, name := range []string{".", "..", "a/b", "ö%2F", "a b"} {
			_, err := i.Write(t.Context(), name, strconv.Itoa(n), 0)
			check(t, err)
			for all, err := range i.Entries(t.Context(), name, "missing") {
				if err != nil || len(all) != 1 || all[name].Text != strconv.Itoa(n) {
					t.Errorf("%q: %v, %v", name, all, err)
				}
				break
			}
		}
	})
}

func TestPrefixIsChecked(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := session(t, testbedtest.ZooKeeper(t))
		for _, prefix := range []string{"a", "/a/"} {
			if _, err := zkcluster.New(s, zkcluster.Config{Prefix: prefix}); err == nil {
				t.Errorf("prefix %q is accepted", prefix)
			}
		}
	})
}
