package check

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
)

// secrets is a cluster that has some secrets, for the function lookup.
type secrets struct{ client dynamic.Interface }

func newSecrets(held ...map[string]any) engineClients {
	objects := make([]runtime.Object, 0, len(held))
	for _, object := range held {
		objects = append(objects, &unstructured.Unstructured{Object: object})
	}
	return secrets{fake.NewSimpleDynamicClient(runtime.NewScheme(), objects...)}
}

// engineClients is what Helm's engine needs for lookup.
type engineClients interface {
	GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error)
}

func (s secrets) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	if apiVersion != "v1" || kind != "Secret" {
		return nil, false, fmt.Errorf("the chart looks up %s %s", apiVersion, kind)
	}
	return s.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}), true, nil
}

// made returns the two secrets that the chart makes.
func made(t *testing.T, options chartutil.ReleaseOptions, held ...map[string]any) (auth, tls *corev1.Secret) {
	t.Helper()
	files, err := render(t, "", options, held...)
	if err != nil {
		t.Fatal(err)
	}
	all := decodeAll(t, documents(files))
	auth, ok := all["Secret/switchyard"].(*corev1.Secret)
	tls, ok2 := all["Secret/switchyard-tls"].(*corev1.Secret)
	if !ok || !ok2 {
		t.Fatal("there are no secrets")
	}
	return auth, tls
}

// asHeld returns a secret as the cluster holds it.
func asHeld(s *corev1.Secret) map[string]any {
	data := map[string]any{}
	for key, value := range s.Data {
		data[key] = base64.StdEncoding.EncodeToString(value)
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": string(s.Type),
		"metadata": map[string]any{"name": s.Name, "namespace": release.Namespace}, "data": data,
	}
}

// TestSecrets_AreMadeOnce: an upgrade has the secrets of the install.
func TestSecrets_AreMadeOnce(t *testing.T) {
	t.Parallel()
	auth, tls := made(t, release)
	upgrade := release
	upgrade.IsInstall, upgrade.IsUpgrade, upgrade.Revision = false, true, 2
	againAuth, againTLS := made(t, upgrade, asHeld(auth), asHeld(tls))
	otherAuth, otherTLS := made(t, release)
	for _, pair := range []struct{ first, again, other *corev1.Secret }{{auth, againAuth, otherAuth}, {tls, againTLS, otherTLS}} {
		if pair.first.Annotations["helm.sh/resource-policy"] != "keep" {
			t.Errorf("%s goes with the release", pair.first.Name)
		}
		for key, value := range pair.first.Data {
			if string(value) != string(pair.again.Data[key]) {
				t.Errorf("the upgrade changes %s of %s", key, pair.first.Name)
			}
			if string(value) == string(pair.other.Data[key]) {
				t.Errorf("two installs have the same %s of %s", key, pair.first.Name)
			}
		}
	}
	key, err := base64.StdEncoding.DecodeString(string(auth.Data["gossip-key"]))
	if err != nil || len(key) != 32 {
		t.Errorf("the gossip key has %d bytes: %v", len(key), err)
	}
	if n := len(auth.Data["root-token"]); n < 32 {
		t.Errorf("the root token has %d characters", n)
	}
}

// TestSecrets_CertificateIsForEveryPod: nodes accept the certificate of each pod as client and server.
func TestSecrets_CertificateIsForEveryPod(t *testing.T) {
	t.Parallel()
	_, tls := made(t, release)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(tls.Data["ca.crt"]) {
		t.Fatal("ca.crt has no certificate")
	}
	cert, err := certificate(tls.Data["tls.crt"])
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range []string{"switchyard-0", "switchyard-31"} {
		for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
			if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: pod, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
				t.Errorf("%s: %v", pod, err)
			}
		}
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: "other-0"}); err == nil {
		t.Error("the certificate is for other pods, too")
	}
}

func certificate(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("no PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}
