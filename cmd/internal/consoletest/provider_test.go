package consoletest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// The client that the service is at the identity provider.
const (
	clientID     = "switchyard-console"
	clientSecret = "secret-of-the-console-0123456789"
)

// person is one that the identity provider knows.
type person struct {
	Subject, Email string
	Verified       bool
}

// provider is an OpenID Connect provider: discovery, authorization code with PKCE, signed id tokens. Its
// sign-in page has a button for each person.
type provider struct {
	URL    string
	people []person

	key *rsa.PrivateKey
	mu  sync.Mutex
	// granted are the codes that were given and not used.
	granted map[string]grant
}

// grant is what a code stands for.
type grant struct {
	person                     person
	challenge, nonce, redirect string
}

// newProvider runs a provider until the test ends.
func newProvider(t testing.TB, people ...person) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{people: people, key: key, granted: map[string]grant{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("GET /grant", p.grant)
	mux.HandleFunc("POST /token", p.token)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

func (p *provider) discovery(w http.ResponseWriter, _ *http.Request) {
	reply(w, object{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": []string{"RS256"}, "code_challenge_methods_supported": []string{"S256"},
	})
}

func (p *provider) keys(w http.ResponseWriter, _ *http.Request) {
	reply(w, object{"keys": []object{{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1",
		"n": base64.RawURLEncoding.EncodeToString(p.key.N.Bytes()),
		"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(p.key.E)).Bytes()),
	}}})
}

// authorize is the page where a person says who they are.
func (p *provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != clientID || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("state") == "" {
		http.Error(w, "not an authorization request with PKCE: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = fmt.Fprint(w, "<!doctype html><html lang=en><title>Example Identity</title><link rel=icon href=data:,><h1>Example Identity</h1>")
	for _, who := range p.people {
		q.Set("who", who.Subject)
		_, _ = fmt.Fprintf(w, "<p><a href=\"/grant?%s\">Continue as %s</a></p>", html.EscapeString(q.Encode()), html.EscapeString(who.Email))
	}
}

// grant gives a code and sends the person back.
func (p *provider) grant(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	for _, who := range p.people {
		if who.Subject != q.Get("who") {
			continue
		}
		code := rand.Text()
		p.mu.Lock()
		p.granted[code] = grant{who, q.Get("code_challenge"), q.Get("nonce"), q.Get("redirect_uri")}
		p.mu.Unlock()
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
		return
	}
	http.NotFound(w, r)
}

// token gives the id token for a code and its verifier, once.
func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, ok := r.BasicAuth()
	if !ok {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	code := r.PostFormValue("code")
	p.mu.Lock()
	g, known := p.granted[code]
	delete(p.granted, code)
	p.mu.Unlock()
	verifier := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	proof := base64.RawURLEncoding.EncodeToString(verifier[:])
	if id != clientID || subtle.ConstantTimeCompare([]byte(secret), []byte(clientSecret)) != 1 || !known || proof != g.challenge || r.PostFormValue("redirect_uri") != g.redirect {
		w.WriteHeader(http.StatusBadRequest)
		reply(w, object{"error": "invalid_grant"})
		return
	}
	now := time.Now()
	signed, err := p.sign(object{
		"iss": p.URL, "aud": clientID, "sub": g.person.Subject, "email": g.person.Email, "email_verified": g.person.Verified, "name": g.person.Subject,
		"nonce": g.nonce, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	reply(w, object{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 3600, "id_token": signed})
}

// sign makes a JSON Web Token.
func (p *provider) sign(claims object) (string, error) {
	head, err := json.Marshal(object{"alg": "RS256", "kid": "1", "typ": "JWT"})
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed := base64.RawURLEncoding.EncodeToString(head) + "." + base64.RawURLEncoding.EncodeToString(body)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, sum[:])
	if err != nil {
		return "", err
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// reply sends an object as JSON.
func reply(w http.ResponseWriter, o object) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(o) // the caller that is gone needs no answer
}
