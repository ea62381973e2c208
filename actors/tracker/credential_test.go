package tracker

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"switchyard/internal/testkit"
	"switchyard/storage"
)

const textAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

func someCredential(kind CredentialKind) (string, Credential) {
	return newCredential(kind, storage.ID{1, 2, 3}, storage.ID{4, 5, 6}, [secretLen]byte{7, 8, 9})
}

func TestParseCredential_ReadsWhatWasMade(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]CredentialKind{WorkspaceToken, LaneToken, SCIMToken, OAuthSecret, OAuthAccessToken}).Draw(t, "kind")
		bytes := func(n int, name string) []byte { return rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, name) }
		text, made := newCredential(kind, storage.ID(bytes(16, "home")), storage.ID(bytes(16, "id")), [secretLen]byte(bytes(secretLen, "secret")))
		got, err := ParseCredential(text)
		if err != nil || got != made || !got.matches(made.Hash[:]) {
			t.Fatalf("%s gives %+v, %v; made %+v", text, got, err, made)
		}
	})
}

// The checksum detects one wrong character, and two swapped ones.
func TestParseCredential_RefusesTypos(t *testing.T) {
	t.Parallel()
	text, _ := someCredential(WorkspaceToken)
	refuse := func(s string) {
		t.Helper()
		if c, err := ParseCredential(s); err == nil {
			t.Errorf("%s gives %+v", s, c)
		}
	}
	for i := range text {
		for _, c := range textAlphabet {
			if byte(c) != text[i] {
				refuse(text[:i] + string(c) + text[i+1:])
			}
		}
		if i > 0 && text[i] != text[i-1] {
			refuse(text[:i-1] + string(text[i]) + string(text[i-1]) + text[i+1:])
		}
		refuse(text[:i])
		refuse(text[:i] + "\n" + text[i+1:])
		refuse(text[:i] + "\n" + text[i:])
		refuse(text[:i] + "=" + text[i+1:])
	}
	for _, s := range []string{"", "swy_", text + "A", " " + text, text + " ", strings.ToUpper(text), "swx_" + text[4:], "swl_" + text[4:]} {
		refuse(s)
	}
}

func TestAuthenticate_AnotherKindOrSecret(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	c, err := ParseCredential(home.Token.Secret)
	if err != nil {
		t.Fatal(err)
	}
	v := w.view(c.Home)
	if _, err := Authenticate(&v, c); err != nil {
		t.Fatal(err)
	}
	forged := c
	forged.Hash[31] ^= 1
	_, err = Authenticate(&v, forged)
	wantCode(t, err, CodeUnauthorized)
	for _, kind := range []CredentialKind{LaneToken, SCIMToken, OAuthSecret, OAuthAccessToken} {
		forged := c
		forged.Kind = kind
		_, err := Authenticate(&v, forged)
		wantCode(t, err, CodeUnauthorized)
	}
	reply, err := w.do(&Request{Workspace: c.Home}, AuthenticateOp, &c)
	if err != nil {
		t.Fatal(err)
	}
	if p := decode[Principal](t, reply.Body); p.ID != string(home.Workspace.OwnerID) || p.Home != c.Home || p.Token != string(home.Token.ID) {
		t.Errorf("stands for %+v", p)
	}
}

func FuzzParseCredential(f *testing.F) {
	testkit.Corpus(f)
	text, _ := someCredential(WorkspaceToken)
	f.Add(text)
	f.Add(text[:len(text)-1] + "\n")
	f.Add("swy_" + strings.Repeat("A", 80))
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCredential(text)
		if err == nil && (len(text) != credentialText || string(c.Kind) != text[:kindLen]) {
			t.Errorf("%q gives %+v", text, c)
		}
	})
}
