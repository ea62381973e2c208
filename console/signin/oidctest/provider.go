// Package oidctest is an OpenID Connect provider for tests: discovery, the authorization code
// flow with PKCE, and signed id tokens. It asks nobody for a password: the test says which
// person signs in, and how the answers are wrong.
package oidctest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// The client that the service is at the provider.
const (
	ClientID     = "switchyard"
	ClientSecret = "secret of the console"
)

// Claims are those of an id token.
type Claims map[string]any

// Provider is a running provider.
type Provider struct {
	URL string

	key *rsa.PrivateKey

	mu     sync.Mutex // guards the fields below
	person Claims
	change func(Claims)
	forge  bool
	down   bool
	codes  map[string]code
}

type code struct{ challenge, nonce, back string }

// New runs a provider until the test ends.
func New(t testing.TB) *Provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &Provider{key: key, person: Claims{"sub": "nobody"}, codes: map[string]code{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.describe)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		down := p.down
		p.mu.Unlock()
		if down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

// As sets the person who signs in.
func (p *Provider) As(person Claims) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.person = person
}

// Change has the claims of each id token changed before it is signed; nil ends that.
func (p *Provider) Change(change func(Claims)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.change = change
}

// Forge makes the provider sign with a key that it does not publish.
func (p *Provider) Forge(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forge = on
}

// Down makes the provider answer nothing but errors.
func (p *Provider) Down(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = on
}

func (p *Provider) describe(w http.ResponseWriter, _ *http.Request) {
	send(w, map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": []string{"RS256"}, "code_challenge_methods_supported": []string{"S256"},
	})
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	send(w, map[string]any{"keys": []any{map[string]any{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1",
		"n": encode(p.key.N.Bytes()), "e": encode(big.NewInt(int64(p.key.E)).Bytes()),
	}}})
}

// authorize sends the browser back with a code at once.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != ClientID || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("nonce") == "" || q.Get("state") == "" {
		http.Error(w, "want a code with PKCE, state and nonce", http.StatusBadRequest)
		return
	}
	made := rand.Text()
	p.mu.Lock()
	p.codes[made] = code{q.Get("code_challenge"), q.Get("nonce"), q.Get("redirect_uri")}
	p.mu.Unlock()
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {made}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
}

// token gives the id token for a code, once.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, ok := r.BasicAuth()
	if !ok {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	} else {
		secret, _ = url.QueryUnescape(secret)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c, known := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code"))
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if id != ClientID || secret != ClientSecret || !known || encode(sum[:]) != c.challenge || r.PostFormValue("redirect_uri") != c.back {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant"}`)) // a client that is gone needs no answer
		return
	}
	now := time.Now()
	claims := Claims{"iss": p.URL, "aud": ClientID, "nonce": c.nonce, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	for name, value := range p.person {
		claims[name] = value
	}
	if p.change != nil {
		p.change(claims)
	}
	send(w, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 3600, "id_token": p.sign(claims)})
}

// sign makes a JSON Web Token.
func (p *Provider) sign(claims Claims) string {
	key := p.key
	if p.forge {
		var err error
		if key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			panic(err) // rand never fails
		}
	}
	head, body := mustJSON(map[string]any{"alg": "RS256", "kid": "1", "typ": "JWT"}), mustJSON(claims)
	text := encode(head) + "." + encode(body)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		panic(err) // the key fits the hash
	}
	return text + "." + encode(signature)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts, numbers and lists
	}
	return b
}

func send(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(mustJSON(v)) // a client that is gone needs no answer
}
