package deployments_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// cluster is an API server with its etcd, scheduler and controllers. It has three nodes and no kubelet: the test says what a kubelet would.
type cluster struct{ kubectl, config string }

// TestKubernetesServer applies the overlays to a real API server. `make kubernetes` builds it from source and names its folder.
func TestKubernetesServer(t *testing.T) {
	t.Parallel()
	programs := os.Getenv("SHOP_TEST_KUBERNETES")
	if programs == "" {
		t.Skip("SHOP_TEST_KUBERNETES names no folder: make kubernetes")
	}
	c := startCluster(t, programs)
	c.nodes(t)
	c.run(t, "", "apply", "--server-side", "-k", "kubernetes/overlays/dev")
	c.until(t, "6 pods are on nodes", func() bool { return len(c.pods(t, "", "spec.nodeName")) == 6 })
	spread := map[string]bool{}
	for _, node := range c.pods(t, "shop", "spec.nodeName") {
		spread[node] = true
	}
	if len(spread) != 3 {
		t.Errorf("the instances are on the nodes %v", spread)
	}
	c.ready(t)
	c.run(t, "", "-n", "shop", "rollout", "status", "deployment/shop", "--timeout=30s")
	c.until(t, "the budget allows one disruption", func() bool { return c.get(t, "pdb/shop", "status.disruptionsAllowed") == "1" })
	if got := c.get(t, "deployment/shop", "status.readyReplicas"); got != "3" {
		t.Errorf("%s of 3 instances are ready", got)
	}

	pods := c.pods(t, "shop", "metadata.name")
	if out, err := c.evict(t, pods[0]); err != nil {
		t.Errorf("the first eviction: %v: %s", err, out)
	}
	c.until(t, "the budget allows none", func() bool { return c.get(t, "pdb/shop", "status.disruptionsAllowed") == "0" })
	if out, err := c.evict(t, pods[1]); err == nil || !strings.Contains(out, "TooManyRequests") {
		t.Errorf("the second eviction: %v: %s", err, out)
	}

	if out, err := c.try(t, "", "-n", "shop", "run", "bad", "--image=shop"); err == nil || !strings.Contains(out, `violates PodSecurity "restricted:latest"`) {
		t.Errorf("a pod without a security context: %v: %s", err, out)
	}
	// Another version, as docs/how-to/kubernetes.md deploys it.
	apply := []string{"apply", "--server-side", "-k", "kubernetes/overlays/prod"}
	if out, err := c.try(t, "", apply...); err == nil || !strings.Contains(out, "field is immutable") {
		t.Errorf("a Job with another image: %v: %s", err, out)
	}
	c.run(t, "", "-n", "shop", "delete", "job", "shop-migrate", "--ignore-not-found")
	c.run(t, "", apply...)
}

// startCluster starts the servers on loopback, and ends them with the test.
func startCluster(t *testing.T, programs string) cluster {
	t.Helper()
	dir := t.TempDir()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	api, etcd, peers := address(t), "http://"+address(t), "http://"+address(t)
	config := filepath.Join(dir, "kubeconfig")
	for name, text := range map[string]string{
		"key":    string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
		"tokens": "token,admin,admin,system:masters\n",
		"kubeconfig": "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a, user: {token: token}}], " +
			"clusters: [{name: a, cluster: {server: 'https://" + api + "', insecure-skip-tls-verify: true}}]}",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	start(t, "etcd", "--data-dir", at("etcd"), "--listen-client-urls", etcd, "--advertise-client-urls", etcd, "--listen-peer-urls", peers)
	_, port, _ := net.SplitHostPort(api)
	start(t, filepath.Join(programs, "kube-apiserver"), "--etcd-servers", etcd, "--bind-address=127.0.0.1", "--secure-port", port, "--cert-dir", at("certificates"),
		"--token-auth-file", at("tokens"), "--authorization-mode=AlwaysAllow", "--service-cluster-ip-range=10.0.0.0/24", "--service-account-issuer=https://a",
		"--service-account-key-file", at("key"), "--service-account-signing-key-file", at("key"))
	c := cluster{kubectl: filepath.Join(programs, "kubectl"), config: config}
	c.until(t, "the API server serves", func() bool { _, err := c.try(t, "", "get", "--raw", "/readyz"); return err == nil })
	// Nodes that nobody runs send no heartbeats.
	start(t, filepath.Join(programs, "kube-controller-manager"), "--kubeconfig", config, "--leader-elect=false", "--secure-port=0",
		"--controllers=*,-node-lifecycle-controller", "--service-account-private-key-file", at("key"))
	start(t, filepath.Join(programs, "kube-scheduler"), "--kubeconfig", config, "--leader-elect=false", "--secure-port=0")
	return c
}

// address returns a free address of loopback.
func address(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start starts a server. The test shows the end of its log if it fails.
func start(t *testing.T, program string, args ...string) {
	t.Helper()
	var log bytes.Buffer
	server := exec.Command(program, args...) // no context: the cleanup ends it after that of the test
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		if t.Failed() {
			t.Logf("%s: %s", program, log.String()[max(0, log.Len()-2000):])
		}
	})
}

// nodes makes three nodes that are ready.
func (c cluster) nodes(t *testing.T) {
	t.Helper()
	for i := range 3 {
		name := fmt.Sprintf("node-%d", i)
		c.run(t, fmt.Sprintf("{apiVersion: v1, kind: Node, metadata: {name: %[1]s, labels: {kubernetes.io/hostname: %[1]s}}}", name), "apply", "-f", "-")
		c.run(t, "", "patch", "node", name, "--subresource=status", "--type=merge", "-p",
			`{"status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "20"}, "conditions": [{"type": "Ready", "status": "True"}]}}`)
		c.run(t, "", "taint", "node", name, "node.kubernetes.io/not-ready-")
	}
}

// ready says that every pod runs, and that those of jobs have ended.
func (c cluster) ready(t *testing.T) {
	t.Helper()
	for _, name := range c.pods(t, "", "metadata.name") {
		status := `{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}`
		if strings.HasPrefix(name, "shop-migrate") {
			status = `{"status": {"phase": "Succeeded"}}`
		}
		c.run(t, "", "-n", "shop", "patch", "pod", name, "--subresource=status", "--type=merge", "-p", status)
	}
}

// evict evicts a pod as a drain of its node does.
func (c cluster) evict(t *testing.T, pod string) (string, error) {
	t.Helper()
	body := `{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "` + pod + `", "namespace": "shop"}}`
	return c.try(t, body, "create", "--raw", "/api/v1/namespaces/shop/pods/"+pod+"/eviction", "-f", "-")
}

// pods returns a field of each pod that has a name, or of all.
func (c cluster) pods(t *testing.T, name, field string) []string {
	t.Helper()
	args := []string{"-n", "shop", "get", "pods", "-o", "jsonpath={.items[*]." + field + "}"}
	if name != "" {
		args = append(args, "-l", "app.kubernetes.io/name="+name)
	}
	return strings.Fields(c.run(t, "", args...))
}

// get returns a field of an object.
func (c cluster) get(t *testing.T, object, field string) string {
	t.Helper()
	return c.run(t, "", "-n", "shop", "get", object, "-o", "jsonpath={."+field+"}")
}

// run runs kubectl, which must succeed.
func (c cluster) run(t *testing.T, input string, args ...string) string {
	t.Helper()
	out, err := c.try(t, input, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

// try runs kubectl.
func (c cluster) try(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.kubectl, append([]string{"--kubeconfig", c.config}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// until waits until a condition holds.
func (c cluster) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
