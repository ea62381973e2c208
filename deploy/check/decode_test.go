package check

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// objects are decoded objects by kind and name.
type objects map[string]runtime.Object

// decoder returns a decoder of the kinds that deploy/ has. It knows the fields in their exact case.
func decoder(t *testing.T) runtime.Decoder {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme, monitoringv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
}

// decodeAll decodes objects strictly and checks their names and labels.
func decodeAll(t *testing.T, docs []string) objects {
	t.Helper()
	d := decoder(t)
	all := objects{}
	for _, doc := range docs {
		object, kind, err := d.Decode([]byte(doc), nil, nil)
		if err != nil {
			t.Errorf("%v in\n%s", err, doc)
			continue
		}
		meta, ok := object.(metav1.Object)
		if !ok {
			t.Fatalf("%s has no metadata", kind)
		}
		id := kind.Kind + "/" + meta.GetName()
		if all[id] != nil {
			t.Errorf("there are two %s", id)
		}
		all[id] = object
		for _, fault := range validation.IsDNS1123Label(meta.GetName()) {
			t.Errorf("%s: %s", id, fault)
		}
		checkLabels(t, id, meta.GetLabels())
	}
	return all
}

func checkLabels(t *testing.T, id string, set map[string]string) {
	t.Helper()
	for key, value := range set {
		for _, fault := range append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...) {
			t.Errorf("%s: label %s=%s: %s", id, key, value, fault)
		}
	}
}

// TestKubernetesFile_Decodes decodes the plain file strictly, too.
func TestKubernetesFile_Decodes(t *testing.T) {
	t.Parallel()
	checkReferences(t, decodeAll(t, plainDocuments(t)))
}

func plainDocuments(t *testing.T) (docs []string) {
	t.Helper()
	text, err := os.ReadFile("../kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return splitDocuments(string(text))
}

// TestDecoder_IsStrict: the decoder refuses what the API server would ignore.
func TestDecoder_IsStrict(t *testing.T) {
	t.Parallel()
	d := decoder(t)
	good := "apiVersion: v1\nkind: Service\nmetadata:\n  name: a\nspec:\n  publishNotReadyAddresses: true\n"
	if _, _, err := d.Decode([]byte(good), nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{{"publish", "Publish"}, {"publishNotReadyAddresses", "publishAddresses"}, {"  name: a", "  name: a\n  name: b"}, {"true", `"true"`}, {"kind: Service", "kind: Servise"}} {
		if _, _, err := d.Decode([]byte(strings.Replace(good, change[0], change[1], 1)), nil, nil); err == nil {
			t.Errorf("%s for %s is accepted", change[1], change[0])
		}
	}
}

// checkReferences checks that objects that name each other are there: pods of selectors, ports of
// services, volumes of mounts, services of ingresses.
func checkReferences(t *testing.T, all objects) {
	t.Helper()
	pods := podTemplates(all)
	for id, pod := range pods {
		checkPod(t, id, pod, all)
	}
	selects := func(id string, selector map[string]string) (found []string) {
		for _, owner := range sortedKeys(pods) {
			if labels.SelectorFromSet(selector).Matches(labels.Set(pods[owner].Labels)) {
				found = append(found, owner)
			}
		}
		if len(found) != 1 || !strings.HasPrefix(found[0], "StatefulSet/") {
			t.Errorf("%s selects the pods of %v", id, found)
		}
		return found
	}
	for id, object := range all {
		switch o := object.(type) {
		case *corev1.Service:
			for _, owner := range selects(id, o.Spec.Selector) {
				for _, port := range o.Spec.Ports {
					if !hasPort(pods[owner].Spec, port.TargetPort.StrVal) {
						t.Errorf("%s: the pods have no port %q", id, port.TargetPort.StrVal)
					}
				}
			}
		case *appsv1.StatefulSet:
			selects(id, o.Spec.Selector.MatchLabels)
			if service, ok := all["Service/"+o.Spec.ServiceName].(*corev1.Service); !ok || service.Spec.ClusterIP != corev1.ClusterIPNone {
				t.Errorf("%s: %q is not a headless service", id, o.Spec.ServiceName)
			}
		case *policyv1.PodDisruptionBudget:
			selects(id, o.Spec.Selector.MatchLabels)
		case *networkingv1.NetworkPolicy:
			for _, owner := range selects(id, o.Spec.PodSelector.MatchLabels) {
				for _, rule := range o.Spec.Ingress {
					for _, port := range rule.Ports {
						if !hasPort(pods[owner].Spec, port.Port.StrVal) {
							t.Errorf("%s: the pods have no port %q", id, port.Port.StrVal)
						}
					}
				}
			}
		case *networkingv1.Ingress:
			for _, rule := range o.Spec.Rules {
				backend := rule.HTTP.Paths[0].Backend.Service
				service, ok := all["Service/"+backend.Name].(*corev1.Service)
				if !ok || !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == backend.Port.Name }) {
					t.Errorf("%s: there is no service %s with a port %s", id, backend.Name, backend.Port.Name)
				}
			}
		case *monitoringv1.ServiceMonitor:
			found := 0
			for _, other := range all {
				service, ok := other.(*corev1.Service)
				if ok && labels.SelectorFromSet(o.Spec.Selector.MatchLabels).Matches(labels.Set(service.Labels)) {
					found++
					if !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == o.Spec.Endpoints[0].Port }) {
						t.Errorf("%s: service %s has no port %s", id, service.Name, o.Spec.Endpoints[0].Port)
					}
				}
			}
			if found != 1 {
				t.Errorf("%s selects %d services", id, found)
			}
		case *batchv1.CronJob:
			if len(strings.Fields(o.Spec.Schedule)) != 5 {
				t.Errorf("%s: schedule %q", id, o.Spec.Schedule)
			}
		}
	}
}

// podTemplates returns the templates of all pods. Volumes of claim templates are among the volumes.
func podTemplates(all objects) map[string]corev1.PodTemplateSpec {
	pods := map[string]corev1.PodTemplateSpec{}
	for id, object := range all {
		switch o := object.(type) {
		case *appsv1.StatefulSet:
			pod := *o.Spec.Template.DeepCopy()
			for _, claim := range o.Spec.VolumeClaimTemplates {
				pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim.Name})
			}
			pods[id] = pod
		case *batchv1.CronJob:
			pods[id] = o.Spec.JobTemplate.Spec.Template
		case *corev1.Pod:
			pods[id] = corev1.PodTemplateSpec{ObjectMeta: o.ObjectMeta, Spec: o.Spec}
		}
	}
	return pods
}

var variable = regexp.MustCompile(`\$\(([A-Z_]+)\)`)

// checkPod checks what a pod says about itself, and that it may do no more than it needs.
func checkPod(t *testing.T, id string, pod corev1.PodTemplateSpec, all objects) {
	t.Helper()
	checkLabels(t, id, pod.Labels)
	volumes := map[string]bool{}
	for _, v := range pod.Spec.Volumes {
		if volumes[v.Name] {
			t.Errorf("%s has two volumes %s", id, v.Name)
		}
		volumes[v.Name] = true
		if claim := v.PersistentVolumeClaim; claim != nil && strings.HasSuffix(claim.ClaimName, "-backups") && all["PersistentVolumeClaim/"+claim.ClaimName] == nil {
			t.Errorf("%s: there is no claim %s", id, claim.ClaimName)
		}
	}
	s := pod.Spec.SecurityContext
	if s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil || pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken {
		t.Errorf("%s may do more than it needs", id)
	}
	for _, c := range pod.Spec.Containers {
		mounted, places := map[string]bool{}, map[string]bool{}
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] || places[m.MountPath] {
				t.Errorf("%s: mount of %q at %q", id, m.Name, m.MountPath)
			}
			mounted[m.Name], places[m.MountPath] = true, true
		}
		for name := range volumes {
			if !mounted[name] {
				t.Errorf("%s mounts no volume %s", id, name)
			}
		}
		set := map[string]bool{}
		for _, e := range c.Env {
			if set[e.Name] || (e.Value == "") == (e.ValueFrom == nil) {
				t.Errorf("%s: variable %s is set twice, or to nothing", id, e.Name)
			}
			set[e.Name] = true
		}
		for _, arg := range c.Args {
			for _, name := range variable.FindAllStringSubmatch(arg, -1) {
				if !set[name[1]] {
					t.Errorf("%s: %s has no variable", id, arg)
				}
			}
		}
		if p := c.SecurityContext; p == nil || p.ReadOnlyRootFilesystem == nil || !*p.ReadOnlyRootFilesystem || p.AllowPrivilegeEscalation == nil || *p.AllowPrivilegeEscalation {
			t.Errorf("%s: the container may do more than it needs", id)
		}
	}
}

func hasPort(pod corev1.PodSpec, name string) bool {
	return slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == name })
	})
}

// checkFiles checks that the alerts and the dashboard are those of deploy/.
func checkFiles(t *testing.T, all objects) {
	t.Helper()
	for _, object := range all {
		switch o := object.(type) {
		case *monitoringv1.PrometheusRule:
			want := monitoringv1.PrometheusRuleSpec{}
			text, err := os.ReadFile("../prometheus/alerts.yaml")
			if err == nil {
				err = yaml.UnmarshalStrict(text, &want)
			}
			if err != nil || len(o.Spec.Groups) == 0 || !reflect.DeepEqual(o.Spec, want) {
				t.Errorf("the rules are not those of deploy/prometheus: %v", err)
			}
		case *corev1.ConfigMap:
			want, err := os.ReadFile("../grafana/switchyard.json")
			if err != nil || strings.TrimSpace(o.Data["switchyard.json"]) != strings.TrimSpace(string(want)) {
				t.Errorf("the dashboard is not that of deploy/grafana: %v", err)
			}
		}
	}
}
