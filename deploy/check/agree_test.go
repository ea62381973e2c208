package check

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// TestChart_AgreesWithTheKubernetesFile compares the objects of the chart without values with those
// of deploy/kubernetes.yaml. The chart has labels of its own, the image of a release, and secrets.
func TestChart_AgreesWithTheKubernetesFile(t *testing.T) {
	t.Parallel()
	files, err := render(t, "image: {repository: switchyard, tag: latest}", release)
	if err != nil {
		t.Fatal(err)
	}
	chart, plain := decodeAll(t, documents(files)), decodeAll(t, plainDocuments(t))
	for _, id := range sortedKeys(chart) {
		switch {
		case plain[id] != nil:
			got, want := normal(t, chart[id]), normal(t, plain[id])
			for _, path := range differences("", got, want) {
				t.Errorf("%s: %s", id, path)
			}
		case id != "Secret/switchyard" && id != "Secret/switchyard-tls" && id != "Pod/switchyard-test":
			t.Errorf("%s is not in deploy/kubernetes.yaml", id)
		}
	}
	for _, id := range sortedKeys(plain) {
		if chart[id] == nil {
			t.Errorf("%s is not in the chart", id)
		}
	}
}

// normal returns an object as JSON has it, without what may differ.
func normal(t *testing.T, object runtime.Object) any {
	t.Helper()
	object = object.DeepCopyObject()
	object.(metav1.Object).SetLabels(nil)
	if service, ok := object.(*corev1.Service); ok && service.Spec.Type == corev1.ServiceTypeClusterIP { // the default
		service.Spec.Type = ""
	}
	if set, ok := object.(*appsv1.StatefulSet); ok {
		c := &set.Spec.Template.Spec.Containers[0]
		c.ImagePullPolicy = ""
		for _, probe := range []*string{(*string)(&c.ReadinessProbe.HTTPGet.Scheme), (*string)(&c.LivenessProbe.HTTPGet.Scheme), (*string)(&c.StartupProbe.HTTPGet.Scheme)} {
			if *probe == "HTTP" { // the default
				*probe = ""
			}
		}
	}
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		t.Fatal(err)
	}
	return withoutLabels(plain)
}

// chartLabels are the labels that the chart adds to those of deploy/kubernetes.yaml.
var chartLabels = []string{"app.kubernetes.io/instance", "app.kubernetes.io/component"}

func withoutLabels(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, label := range chartLabels {
			delete(v, label)
		}
		for key, value := range v {
			v[key] = withoutLabels(value)
		}
	case []any:
		for i := range v {
			v[i] = withoutLabels(v[i])
		}
	}
	return v
}

// differences returns the places in which two values differ.
func differences(path string, got, want any) (places []string) {
	text := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	g, ok := got.(map[string]any)
	w, ok2 := want.(map[string]any)
	if !ok || !ok2 {
		if text(got) != text(want) {
			places = append(places, path+" is "+text(got)+" in the chart and "+text(want)+" in the file")
		}
		return places
	}
	for _, key := range slices.Compact(slices.Sorted(slices.Values(append(sortedKeys(g), sortedKeys(w)...)))) {
		places = append(places, differences(path+"."+key, g[key], w[key])...)
	}
	return places
}
