package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
)

// Network has machines with one server each. It can cut one of them off from the others, while this program still reaches all. A machine
// is a namespace of Linux, so a network needs root and the program ip.
type Network struct {
	machines []machine
	// Close removes the machines. It returns the same error each time.
	Close func() error
}

// machine is where a server runs. The zero value is this machine, with its loopback address.
type machine struct{ tool, namespace, addr string }

// host is the address of the machine.
func (m machine) host() string { return cmp.Or(m.addr, "127.0.0.1") }

// command returns the path and the arguments that run a program on the machine.
func (m machine) command(program string, args []string) (path string, all []string) {
	if m.namespace == "" {
		return program, args
	}
	return m.tool, append([]string{"netns", "exec", m.namespace, program}, args...)
}

// networkGuard removes namespaces when its input ends, as the input also does if this program dies.
const networkGuard = `trap '' HUP INT TERM
cat >/dev/null
ip=$1 code=0
shift
for namespace; do
	[ ! -e "/run/netns/$namespace" ] || "$ip" netns delete "$namespace" || code=1
done
exit $code`

// networkRange has the addresses of all machines. It is for tests (RFC 2544).
const networkRange = "198.18.0.0/15"

// StartNetwork makes n machines. They and this one are at a bridge, which is in a namespace of its own: no firewall of this machine
// is between them.
func StartNetwork(ctx context.Context, n int) (*Network, error) {
	tool, err := locate("ip")
	if err == nil && os.Getuid() != 0 {
		err = fmt.Errorf("a network of namespaces, which needs root: %w", ErrNotInstalled)
	}
	if err != nil {
		return nil, err
	}
	var name string
	var id int
	for range startAttempts {
		id = rand.N(512)
		name = fmt.Sprintf("shop%03x", id)
		if err = runIP(ctx, tool, "netns add "+name); err == nil { // a name that exists is that of another program
			break
		}
	}
	if err != nil {
		return nil, err
	}
	network := &Network{}
	subnet := fmt.Sprintf("198.%d.%d.", 18+id/256, id%256) // of networkRange
	steps := []string{
		"-n BRIDGE link add bridge type bridge", "-n BRIDGE link set bridge up", "link add BRIDGE type veth peer name host netns BRIDGE",
		"-n BRIDGE link set host master bridge up", "addr add " + subnet + "1/24 dev BRIDGE", "link set BRIDGE up",
	}
	for i := range n {
		m := machine{tool, fmt.Sprint(name, "-", i+1), fmt.Sprint(subnet, i+2)}
		network.machines = append(network.machines, m)
		for _, step := range []string{
			"netns add NAME", "-n BRIDGE link add NAME type veth peer name eth0 netns NAME", "-n BRIDGE link set NAME master bridge up",
			"-n NAME addr add " + m.addr + "/24 dev eth0", "-n NAME link set eth0 up", "-n NAME link set lo up",
		} {
			steps = append(steps, strings.ReplaceAll(step, "NAME", m.namespace))
		}
	}
	if network.Close, err = guardNetwork(ctx, tool, name, network.machines); err != nil {
		return nil, errors.Join(err, runIP(ctx, tool, "netns delete "+name))
	}
	for _, step := range steps {
		if err := runIP(ctx, tool, strings.ReplaceAll(step, "BRIDGE", name)); err != nil {
			return nil, errors.Join(err, network.Close())
		}
	}
	return network, nil
}

// guardNetwork starts a guard, and returns what ends it.
func guardNetwork(ctx context.Context, tool, bridge string, machines []machine) (end func() error, err error) {
	args := []string{"-c", networkGuard, "guard", tool}
	for _, m := range machines {
		args = append(args, m.namespace)
	}
	guard := exec.CommandContext(context.WithoutCancel(ctx), "/bin/sh", append(args, bridge)...)
	ownGroup(guard)
	pipe, err := guard.StdinPipe()
	if err == nil {
		err = guard.Start()
	}
	return sync.OnceValue(func() error { return errors.Join(pipe.Close(), guard.Wait()) }), err
}

// Cut drops all packets between the machine of addr, a HOST:PORT, and the other machines, until Mend. Connections stay open. One
// machine can be cut off at a time.
func (n *Network) Cut(ctx context.Context, addr string) error {
	return n.neighbors(ctx, addr, "replace", "lladdr 02:00:00:00:00:01 nud permanent") // which is no machine's
}

// Mend ends Cut.
func (n *Network) Mend(ctx context.Context, addr string) error {
	return n.neighbors(ctx, addr, "delete", "")
}

// neighbors changes the neighbor entries of the machine of addr and of the others.
func (n *Network) neighbors(ctx context.Context, addr, change, more string) error {
	at := slices.IndexFunc(n.machines, func(m machine) bool { return strings.HasPrefix(addr, m.addr+":") })
	if at < 0 {
		return fmt.Errorf("the network has no machine with the address %s", addr)
	}
	var errs []error
	for i, other := range n.machines {
		for _, pair := range [][2]machine{{n.machines[at], other}, {other, n.machines[at]}} {
			if i != at {
				errs = append(errs, runIP(ctx, other.tool, fmt.Sprintf("-n %s neighbor %s %s dev eth0 %s", pair[0].namespace, change, pair[1].addr, more)))
			}
		}
	}
	return errors.Join(errs...)
}

func runIP(ctx context.Context, tool, arguments string) error {
	if out, err := exec.CommandContext(ctx, tool, strings.Fields(arguments)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", arguments, err, out)
	}
	return nil
}
