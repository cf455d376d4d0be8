package blackbox_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/stock"
)

// purgeEnv makes a run of the test binary a process that purges: the URL of the database, and the order at which it is paused.
const purgeEnv = "SHOP_TEST_PURGE_CHILD"

const paused = "the entries of the order are deleted"

// deletion is a gorm plugin that pauses, within the transaction, when the entries of an order are deleted.
type deletion struct{ order string }

func (deletion) Name() string { return "deletion" }

func (d deletion) Initialize(db *gorm.DB) error {
	return db.Callback().Raw().After("gorm:raw").Register("deletion", func(tx *gorm.DB) {
		if tx.Error == nil && strings.Contains(tx.Statement.SQL.String(), "DELETE FROM ledger") && slices.Contains(tx.Statement.Vars, any(d.order)) {
			fmt.Fprintln(os.Stdout, paused)
			io.Copy(io.Discard, os.Stdin) // until the parent ends
		}
	})
}

// TestPurgeChild is the process that is killed.
func TestPurgeChild(t *testing.T) {
	url, at, ok := strings.Cut(os.Getenv(purgeEnv), " ")
	if !ok {
		t.Skip("this is no child")
	}
	n, err := open(t, url, "child", deletion{at}).PurgeOrders(t.Context(), nil, everything)
	t.Fatalf("the purge ended: %d, %v", n, err)
}

// killedAt has another process purge, and kills it when it has deleted the entries of an order and not committed that.
func killedAt(t *testing.T, url, id string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPurgeChild$")
	cmd.Env = append(os.Environ(), purgeEnv+"="+url+" "+id)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var said []string
	for lines.Scan() && lines.Text() != paused {
		said = append(said, lines.Text())
	}
	if lines.Text() != paused {
		t.Errorf("the child ended before: %s", strings.Join(said, "\n"))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	cmd.Wait() // it says that the child was killed
}

// A process is killed with kill -9 in the second transaction of its purge. The first one has its effect, and the second one has none.
// The audits say the same as before, and the next purge deletes the rest.
func TestPurgeThatIsKilled(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		raw := new(handle)
		s := open(t, url, "one", raw)
		create(t, s, "a", "conditional", 100)
		create(t, s, "b", "conditional", 100)
		ids := make(map[order.Status][]string)
		statuses := []order.Status{order.Confirmed, order.Cancelled, order.Expired} // in the order of their transactions
		for range 3 {
			for _, to := range statuses {
				ids[to] = append(ids[to], endedOrder(t, s, to, "a", "b"))
			}
		}
		left := func() map[order.Status]int {
			n := make(map[order.Status]int)
			for _, to := range statuses {
				for _, table := range []string{"ledger WHERE order_id", "order_lines WHERE order_id", "orders WHERE id"} {
					var rows int
					if err := raw.db.Raw("SELECT COUNT(*) FROM "+table+" IN ?", ids[to]).Scan(&rows).Error; err != nil {
						t.Fatal(err)
					}
					n[to] += rows
				}
			}
			return n
		}
		before, rows := allAudits(t, s, isRight), left()
		same := func(when string) {
			t.Helper()
			if diff := cmp.Diff(before, allAudits(t, s, isRight), cmpopts.IgnoreFields(stock.Audit{}, "RightAt")); diff != "" {
				t.Errorf("%s: -before +after: %s", when, diff)
			}
		}
		killedAt(t, url, ids[order.Cancelled][2])
		same("killed")
		rows[order.Confirmed] = 0
		if diff := cmp.Diff(rows, left()); diff != "" {
			t.Errorf("rows of orders after the kill: -want +got: %s", diff)
		}
		deleted := int64(0)
		testbedtest.Eventually(t, "the rest to be deleted", func() bool { // when the server has noticed the end of the process
			deleted += purge(t, s, everything)
			return deleted == 6
		})
		same("purged")
	})
}
