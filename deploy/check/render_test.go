package check

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the rendered objects of testdata anew")

const chartDir = "../helm/switchyard"

// release is the release that tests render.
var release = chartutil.ReleaseOptions{Name: "switchyard", Namespace: "issues", Revision: 1, IsInstall: true}

// render renders the chart as helm install does. The cluster has the secrets in held.
func render(t *testing.T, values string, options chartutil.ReleaseOptions, held ...map[string]any) (map[string]string, error) {
	t.Helper()
	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	var given map[string]any
	if err := yaml.UnmarshalStrict([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.33.0", Major: "1", Minor: "33"}
	all, err := chartutil.ToRenderValues(chart, given, options, capabilities)
	if err != nil {
		return nil, err
	}
	return engine.RenderWithClientProvider(chart, all, newSecrets(held...))
}

// documents returns the objects of rendered files, in the order of the files' names.
func documents(files map[string]string) (docs []string) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if filepath.Ext(name) != ".yaml" {
			continue
		}
		for _, doc := range splitDocuments(files[name]) {
			if strings.TrimSpace(doc) != "" {
				docs = append(docs, strings.TrimSpace(doc)+"\n")
			}
		}
	}
	return docs
}

// splitDocuments splits a stream of YAML at the lines that are three dashes.
func splitDocuments(text string) []string {
	return strings.Split("\n"+text, "\n---\n")
}

// valueSets returns the sets of values in testdata by name.
func valueSets(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d sets of values, %v", len(files), err)
	}
	sets := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sets[strings.TrimSuffix(filepath.Base(file), ".values.yaml")] = string(text)
	}
	return sets
}

// TestChart_Renders renders each set of values, checks every object, and compares them with those
// in testdata.
func TestChart_Renders(t *testing.T) {
	t.Parallel()
	for name, values := range valueSets(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, err := render(t, values, release)
			if err != nil {
				t.Fatal(err)
			}
			docs := documents(files)
			all := decodeAll(t, docs)
			checkReferences(t, all)
			checkFiles(t, all)
			compareGolden(t, name, docs)
		})
	}
}

// compareGolden compares rendered objects with the file in testdata. Left out are the contents of
// secrets, which are random, and the objects with the alerts and the dashboard, which are files of
// the chart.
func compareGolden(t *testing.T, name string, docs []string) {
	t.Helper()
	var got bytes.Buffer
	for _, doc := range docs {
		var object map[string]any
		if err := yaml.UnmarshalStrict([]byte(doc), &object); err != nil {
			t.Fatal(err)
		}
		switch object["kind"] {
		case "ConfigMap", "PrometheusRule":
			continue
		case "Secret":
			data, _ := object["data"].(map[string]any)
			for key := range data {
				data[key] = ""
			}
		}
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString("---\n")
		got.Write(text)
	}
	golden := filepath.Join("testdata", name+".golden.yaml")
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n"); !slices.Equal(got, want) {
		for i, line := range got {
			if i >= len(want) || line != want[i] {
				t.Fatalf("%s: line %d is now %q; look at the change and run make deploy-golden", golden, i+1, line)
			}
		}
		t.Fatalf("%s: %d lines are gone; look at the change and run make deploy-golden", golden, len(want)-len(got))
	}
}

// TestChart_UpgradeOfFewerNodes: a smaller number of replicas is no error once there is a cluster.
func TestChart_UpgradeOfFewerNodes(t *testing.T) {
	t.Parallel()
	upgrade := release
	upgrade.IsInstall, upgrade.IsUpgrade = false, true
	if _, err := render(t, "replicas: 2", upgrade); err != nil {
		t.Error(err)
	}
}

// TestChart_NamesFollowTheRelease: a release with another name has its own objects.
func TestChart_NamesFollowTheRelease(t *testing.T) {
	t.Parallel()
	other := release
	other.Name = strings.Repeat("very-long-name-", 3) + "12345678"
	files, err := render(t, "backup: {enabled: true, by: cronjob, volume: {size: 1Gi}, drill: {enabled: true}}", other)
	if err != nil {
		t.Fatal(err)
	}
	all := decodeAll(t, documents(files))
	checkReferences(t, all)
	for id := range all {
		if strings.HasSuffix(id, "/switchyard") {
			t.Errorf("%s does not have the name of the release", id)
		}
		if kind, name, _ := strings.Cut(id, "/"); kind == "CronJob" && len(name) > 52 {
			t.Errorf("%s: the name has %d characters, a CronJob may have 52", id, len(name))
		}
	}
}

// TestChart_RefusesValues: values that can't work are refused with the name of the value.
func TestChart_RefusesValues(t *testing.T) {
	t.Parallel()
	for values, says := range map[string]string{
		"replica: 3":                                         "additional properties 'replica' not allowed",
		"replicas: three":                                    "/replicas",
		"replicas: 2":                                        "less than bootstrapExpect (3)",
		"bootstrapExpect: 2":                                 "/bootstrapExpect",
		"{bootstrapExpect: 1, replicas: 3}":                  "each pod would form a cluster of its own",
		"replicas: 40":                                       "more than peerTLS.nodes (32)",
		"storage: {size: 20GB}":                              "/storage/size",
		"memory: 2Gi":                                        "/memory",
		"flags: {data: /elsewhere}":                          "invalid propertyName 'data'",
		"flags: {gossip-key: abc}":                           "invalid propertyName 'gossip-key'",
		"flags: {Limit_Bytes: 1}":                            "invalid propertyName 'Limit_Bytes'",
		"tls: {ca: true}":                                    "tls.ca needs tls.existingSecret",
		"ingress: {enabled: true}":                           "ingress.enabled needs ingress.hosts",
		"ingress: {enabled: true, hosts: [{name: a}]}":       "/ingress/hosts/0",
		"backup: {enabled: true}":                            "needs backup.s3.bucket",
		"backup: {drill: {enabled: true}}":                   "backup.drill.enabled needs backup.enabled",
		"backup: {enabled: true, s3: {bucket: b}}":           "needs backup.s3.credentialsSecret",
		"backup: {enabled: true, by: both}":                  "/backup/by",
		"backup: {enabled: true, every: daily}":              "/backup/every",
		"zoneSpread: Always":                                 "/zoneSpread",
		"terminationGracePeriodSeconds: 5":                   "/terminationGracePeriodSeconds",
		"zone: {name: -a}":                                   "/zone/name",
		"image: {digest: abc}":                               "/image/digest",
		"networkPolicy: {enabled: true, httpFrom: everyone}": "/networkPolicy/httpFrom",
		"backup: {enabled: true, s3: {bucket: b, credentialsSecret: c}, volume: {size: 1Gi}}": "not both",
		"backup: {enabled: true, volume: {size: 1Gi, accessModes: [ReadWriteOnce]}}":          "ReadWriteMany",
	} {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			_, err := render(t, values, release)
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("want an error with %q, got %v", says, err)
			}
		})
	}
}
