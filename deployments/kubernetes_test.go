package deployments_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// object is what kustomize builds, decoded into its type.
type object struct {
	name string // KIND NAME
	any
}

// types are those of the objects here. A type of another project has no fields to check.
var types = map[string]func() any{
	"v1/Namespace":                            func() any { return new(corev1.Namespace) },
	"v1/Secret":                               func() any { return new(corev1.Secret) },
	"v1/Service":                              func() any { return new(corev1.Service) },
	"apps/v1/Deployment":                      func() any { return new(appsv1.Deployment) },
	"batch/v1/Job":                            func() any { return new(batchv1.Job) },
	"policy/v1/PodDisruptionBudget":           func() any { return new(policyv1.PodDisruptionBudget) },
	"networking.k8s.io/v1/NetworkPolicy":      func() any { return new(networkingv1.NetworkPolicy) },
	"monitoring.coreos.com/v1/ServiceMonitor": func() any { return &map[string]any{} },
}

// build returns the objects of a folder. A field that its type does not have is an error.
func build(t *testing.T, folder string) (all []object) {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range built.Resources() {
		id := r.GetApiVersion() + "/" + r.GetKind()
		if types[id] == nil {
			t.Fatalf("%s: no type for %s", folder, id)
		}
		into := types[id]()
		if err := yaml.UnmarshalStrict([]byte(r.MustYaml()), into); err != nil {
			t.Errorf("%s: %s %s: %v", folder, id, r.GetName(), err)
		}
		if r.GetNamespace() != "shop" && r.GetKind() != "Namespace" {
			t.Errorf("%s: %s %s is in namespace %q", folder, id, r.GetName(), r.GetNamespace())
		}
		all = append(all, object{r.GetKind() + " " + r.GetName(), into})
	}
	return all
}

// overlays are the folders that a user applies, and production with the component.
func overlays(t *testing.T) map[string][]object {
	t.Helper()
	monitored := t.TempDir()
	here, err := filepath.Abs("kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	from, err := filepath.Rel(monitored, here)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("resources: [%[1]s/overlays/prod]\ncomponents: [%[1]s/components/servicemonitor]\n", from)
	if err := os.WriteFile(filepath.Join(monitored, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string][]object{
		"dev": build(t, "kubernetes/overlays/dev"), "prod": build(t, "kubernetes/overlays/prod"), "monitored": build(t, monitored),
	}
}

// pods returns the templates of pods.
func pods(all []object) map[string]corev1.PodTemplateSpec {
	templates := map[string]corev1.PodTemplateSpec{}
	for _, o := range all {
		switch o := o.any.(type) {
		case *appsv1.Deployment:
			templates[o.Name] = o.Spec.Template
		case *batchv1.Job:
			templates[o.Name] = o.Spec.Template
		}
	}
	return templates
}

// TestOverlaysBuild: each has three instances, a budget, policies and a migration, and of stores only dev has its own.
func TestOverlaysBuild(t *testing.T) {
	t.Parallel()
	base := []string{
		"Namespace shop", "Service shop", "Deployment shop", "PodDisruptionBudget shop", "Job shop-migrate", "NetworkPolicy deny", "NetworkPolicy shop",
	}
	more := map[string][]string{
		"dev":       {"Deployment mariadb", "Deployment redis", "Service mariadb", "Service redis", "NetworkPolicy stores", "Secret"},
		"prod":      nil,
		"monitored": {"ServiceMonitor shop"},
	}
	for name, all := range overlays(t) {
		var got []string
		for _, o := range all {
			if strings.HasPrefix(o.name, "Secret shop-stores-") { // kustomize adds a hash
				o.name = "Secret"
			}
			got = append(got, o.name)
			if d, ok := o.any.(*appsv1.Deployment); ok && d.Name == "shop" && *d.Spec.Replicas != 3 {
				t.Errorf("%s has %d instances", name, *d.Spec.Replicas)
			}
		}
		want := slices.Concat(base, more[name])
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: built %q, want %q", name, got, want)
		}
	}
}

// restricted returns why a pod does not satisfy the standard that the namespace enforces.
func restricted(t *testing.T, pod corev1.PodTemplateSpec) string {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &pod.ObjectMeta, &pod.Spec))
	return result.ForbiddenDetail()
}

// TestPodsAreRestricted: the namespace enforces the standard `restricted`, and each pod satisfies it, writes to no image and has a limit.
func TestPodsAreRestricted(t *testing.T) {
	t.Parallel()
	for name, all := range overlays(t) {
		for pod, template := range pods(all) {
			if why := restricted(t, template); why != "" {
				t.Errorf("%s: %s: %s", name, pod, why)
			}
			for _, c := range template.Spec.Containers {
				if !*c.SecurityContext.ReadOnlyRootFilesystem || c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
					t.Errorf("%s: %s writes to its image, or lacks a limit of memory or a request of processor time", name, pod)
				}
			}
			if token := template.Spec.AutomountServiceAccountToken; token == nil || *token {
				t.Errorf("%s: %s gets a token of the cluster", name, pod)
			}
		}
		for _, o := range all {
			if ns, ok := o.any.(*corev1.Namespace); ok && ns.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
				t.Errorf("%s: the namespace enforces %v", name, ns.Labels)
			}
		}
	}
	if restricted(t, corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "any"}}}}) == "" {
		t.Error("a pod without a security context is admitted")
	}
}

// TestProbesAskTheService: each path is one of the API description, and each port one of the container.
func TestProbesAskTheService(t *testing.T) {
	t.Parallel()
	description, err := os.ReadFile("../internal/httpapi/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := pods(build(t, "kubernetes/overlays/prod"))["shop"].Spec.Containers[0]
	for name, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "readiness": c.ReadinessProbe, "liveness": c.LivenessProbe} {
		if probe == nil || probe.HTTPGet == nil || !strings.Contains(string(description), "\n  "+probe.HTTPGet.Path+":\n") || probe.HTTPGet.Port.String() != "http" {
			t.Errorf("the %s probe is %v", name, probe)
		}
	}
	if c.ReadinessProbe.HTTPGet.Path == c.LivenessProbe.HTTPGet.Path {
		t.Error("a database that fails restarts every instance")
	}
}

// TestSelectorsMatch: the Service, the budget and the policy select the instances, and each secret that a pod of dev names is there.
func TestSelectorsMatch(t *testing.T) {
	t.Parallel()
	all := build(t, "kubernetes/overlays/dev")
	templates, secrets := pods(all), map[string]map[string]string{}
	for _, o := range all {
		if s, ok := o.any.(*corev1.Secret); ok {
			secrets[s.Name] = map[string]string{}
			for key := range s.Data {
				secrets[s.Name][key] = key
			}
		}
	}
	for _, o := range all {
		switch o := o.any.(type) {
		case *corev1.Service:
			selects(t, "Service "+o.Name, &metav1.LabelSelector{MatchLabels: o.Spec.Selector}, templates[o.Name])
		case *policyv1.PodDisruptionBudget:
			selects(t, "budget", o.Spec.Selector, templates[o.Name])
		case *networkingv1.NetworkPolicy:
			if o.Name == "shop" {
				selects(t, "policy", &o.Spec.PodSelector, templates["shop"])
				selects(t, "policy", &o.Spec.PodSelector, templates["shop-migrate"])
			}
		}
	}
	for name, template := range templates {
		for _, variable := range template.Spec.Containers[0].Env {
			if from := variable.ValueFrom; from != nil && from.SecretKeyRef != nil && secrets[from.SecretKeyRef.Name][from.SecretKeyRef.Key] == "" {
				t.Errorf("%s: %s is in no secret: %v", name, variable.Name, from.SecretKeyRef)
			}
		}
	}
}

// selects fails the test unless a selector selects a pod.
func selects(t *testing.T, name string, s *metav1.LabelSelector, pod corev1.PodTemplateSpec) {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	if selector.Empty() || !selector.Matches(labels.Set(pod.Labels)) {
		t.Errorf("%s: %v does not select %v", name, selector, pod.Labels)
	}
}

// portsOf are the ports that a variable of a pod needs, by the defaults of what it may name.
var portsOf = map[string][]string{
	"SHOP_DATABASE": {"3306/TCP", "5432/TCP"}, "SHOP_REDIS": {"6379/TCP"}, "SHOP_REDLOCK": {"6379/TCP"}, "SHOP_ZOOKEEPER": {"2181/TCP"},
	"SHOP_ETCD": {"2379/TCP"}, "SHOP_WEBHOOK": {"443/TCP"}, "OTEL_EXPORTER_OTLP_ENDPOINT": {"4318/TCP"},
}

// allowed returns the ports of a rule.
func allowed(ports []networkingv1.NetworkPolicyPort) (all []string) {
	for _, p := range ports {
		protocol := corev1.ProtocolTCP
		if p.Protocol != nil {
			protocol = *p.Protocol
		}
		all = append(all, fmt.Sprintf("%v/%s", p.Port, protocol))
	}
	return all
}

// TestPolicyAllowsWhatThePodsUse: others reach the ports on which an instance listens, and the pods reach those of names and of the stores that
// their variables name. No other port is open.
func TestPolicyAllowsWhatThePodsUse(t *testing.T) {
	t.Parallel()
	sorted := func(ports []string) []string { return slices.Compact(slices.Sorted(slices.Values(ports))) }
	for name, all := range overlays(t) {
		templates := pods(all)
		var listens, declared, in, out, storesIn, stores []string
		calls := []string{"53/TCP", "53/UDP"}
		for _, pod := range []string{"shop", "shop-migrate"} {
			c := templates[pod].Spec.Containers[0]
			for _, v := range c.Env {
				calls = append(calls, portsOf[v.Name]...)
				if _, port, listener := strings.Cut(v.Value, "0.0.0.0:"); listener {
					listens = append(listens, port+"/TCP")
				}
			}
			for _, p := range c.Ports {
				declared = append(declared, fmt.Sprintf("%d/TCP", p.ContainerPort))
			}
		}
		for _, o := range all {
			switch o := o.any.(type) {
			case *corev1.Service:
				for _, p := range o.Spec.Ports {
					if o.Name != "shop" {
						stores = append(stores, fmt.Sprintf("%d/TCP", p.Port))
					}
				}
			case *networkingv1.NetworkPolicy:
				for _, rule := range o.Spec.Ingress {
					if o.Name == "shop" {
						in = append(in, allowed(rule.Ports)...)
					} else {
						storesIn = append(storesIn, allowed(rule.Ports)...)
					}
				}
				for _, rule := range o.Spec.Egress {
					out = append(out, allowed(rule.Ports)...)
				}
			}
		}
		if in = sorted(in); !slices.Equal(in, sorted(listens)) || !slices.Equal(in, sorted(declared)) {
			t.Errorf("%s: the policy admits %q, the instances listen on %q, and their pods declare %q", name, in, listens, declared)
		}
		if out = sorted(out); !slices.Equal(out, sorted(calls)) {
			t.Errorf("%s: the pods may call %q, and need %q", name, out, sorted(calls))
		}
		if storesIn = sorted(storesIn); !slices.Equal(storesIn, sorted(stores)) {
			t.Errorf("%s: the policies of stores admit %q, and they serve %q", name, storesIn, stores)
		}
	}
}
