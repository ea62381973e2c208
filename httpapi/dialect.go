package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"switchyard/actors/tracker"
)

// dialect describes the bodies and failures of a part of the API that a standard
// prescribes. Routes without a dialect follow Decisions 3 and 4. A dialect belongs to a
// prefix of paths, so paths without a route are answered in it, too.
type dialect struct {
	// prefix is the beginning of its paths.
	prefix string
	// media is the Content-Type of its answers.
	media []byte
	// forms is set if bodies are application/x-www-form-urlencoded instead of JSON.
	forms bool
	// keyless is set if requests ignore an Idempotency-Key.
	keyless bool
	// anywhere is set if the operation finds its workspace itself, and so runs on the
	// node that was asked.
	anywhere bool
	// challenge is the WWW-Authenticate of a 401; nil for that of bearer tokens.
	challenge []byte
	// headers are those of every answer.
	headers [][2][]byte
	// explain gives the body of a failure.
	explain func(f *failure) any
	// errors describes those bodies: its name among the schemas, and the schema.
	errors     string
	errorShape doc
	// security names the credentials it takes.
	security []doc
}

var dialects = []*dialect{oauthDialect, scimDialect}

// dialectOf returns the dialect of a path, or nil if it has none.
func dialectOf[S ~string | ~[]byte](path S) *dialect {
	for _, d := range dialects {
		if strings.HasPrefix(string(path[:min(len(path), len(d.prefix))]), d.prefix) {
			return d
		}
	}
	return nil
}

// dialect returns the dialect of the request's answer. Without a route it is that of the
// path as it was sent.
func (x *exchange) dialect() *dialect {
	if x.route != nil {
		return x.route.dialect
	}
	if x.target.path != nil {
		return dialectOf(x.target.path)
	}
	return dialectOf(x.ctx.Request.Header.RequestURI())
}

// noRoute returns the failure for a path without a route.
func (d *dialect) noRoute(t *target) error {
	if d == scimDialect && t.n == 4 && string(t.segments[3]) == "Me" {
		return errNoAlias()
	}
	return errNoRoute()
}

// accepts reports whether a body may be of a type.
func (d *dialect) accepts(contentType []byte) bool {
	if d == nil || !d.forms {
		return isJSON(contentType)
	}
	media, _, _ := bytes.Cut(contentType, []byte{';'})
	return bytes.EqualFold(bytes.TrimSpace(media), mediaForm)
}

// refuseMedia is the failure for a body of another type.
func (d *dialect) refuseMedia() error {
	f := errMediaType()
	if d != nil && d.forms {
		f.clientError.Hint = "Send a form: Content-Type: application/x-www-form-urlencoded, and no Content-Encoding."
	}
	return f
}

// describe sets what every answer of the dialect has.
func (d *dialect) describe(x *exchange) {
	for _, h := range d.headers {
		x.ctx.Response.Header.SetCanonical(h[0], h[1])
	}
}

// respondFailure gives a failure the dialect's form.
func (d *dialect) respondFailure(x *exchange, f *failure) {
	body, err := encode(d.explain(f))
	if err != nil { // texts alone
		panic(err)
	}
	response := &x.ctx.Response
	d.describe(x)
	response.Header.SetContentTypeBytes(d.media)
	if f.statusCode() == http.StatusUnauthorized && d.challenge != nil {
		response.Header.SetCanonical(headerAuthenticate, d.challenge)
	}
	response.SetBodyRaw(body)
}

// faultsOf returns all faults of a request and the hint as one line.
func faultsOf(told *tracker.Error) string {
	text := told.Message
	if details, ok := told.Details.(tracker.BadRequestDetails); ok && len(details.Issues) > 1 {
		const most = 20
		texts := make([]string, 0, most)
		for _, issue := range details.Issues[:min(len(details.Issues), most)] {
			texts = append(texts, strings.TrimPrefix(issue.Path+": "+issue.Message, ": "))
		}
		text = strings.Join(texts, " ")
	}
	if told.Hint != "" && !strings.Contains(told.Hint, "details.issues") {
		text += " " + told.Hint
	}
	return text
}

var (
	mediaForm      = []byte("application/x-www-form-urlencoded")
	valueSCIM      = []byte("application/scim+json")
	headerPragma   = []byte("Pragma")
	valueNoCache   = []byte("no-cache")
	headerLocation = []byte("Location")
)

// oauthDialect is RFC 6749's.
var oauthDialect = &dialect{
	prefix: "/oauth/", media: valueJSON, forms: true, keyless: true, anywhere: true, challenge: challengeBasic,
	headers: [][2][]byte{{headerCacheControl, valueNoStore}, {headerPragma, valueNoCache}},
	explain: func(f *failure) any {
		return oauthFailure{oauthWord(f), oauthText(faultsOf(f.clientError))}
	},
	errors: "OAuthError",
	errorShape: doc{
		"type": "object", "required": []string{"error"},
		"properties": doc{"error": doc{"type": "string"}, "error_description": doc{"type": "string"}},
	},
	security: []doc{{"oauthClient": []string{}}, {}},
}

type oauthFailure struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// oauthWord returns the error code of RFC 6749 for a failure. Failures without one get a
// code of the authorization endpoint.
func oauthWord(f *failure) string {
	switch status := f.statusCode(); {
	case f.clientError.Reason != "":
		return f.clientError.Reason
	case status == http.StatusUnauthorized:
		return "invalid_client"
	case status == http.StatusInternalServerError:
		return "server_error"
	case status == http.StatusServiceUnavailable, status == http.StatusTooManyRequests:
		return "temporarily_unavailable"
	}
	return "invalid_request"
}

// oauthText is a text in the characters that an error_description may have.
func oauthText(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '"' || r == '\\':
			return '\''
		case r < ' ' || r > '~':
			return -1
		}
		return r
	}, text)
}

// scimDialect is RFC 7644's.
var scimDialect = &dialect{
	prefix: "/scim/", media: valueSCIM,
	explain: func(f *failure) any {
		return scimFailure{
			Schemas: []string{"urn:ietf:params:scim:api:messages:2.0:Error"}, Status: number(float64(f.statusCode())),
			Type: scimType(f), Detail: faultsOf(f.clientError),
		}
	},
	errors: "ScimError",
	errorShape: doc{
		"type": "object", "required": []string{"schemas", "status", "detail"},
		"properties": doc{
			"schemas": doc{"type": "array", "items": doc{"type": "string"}}, "status": doc{"type": "string"},
			"scimType": doc{"type": "string"}, "detail": doc{"type": "string"},
		},
	},
	security: []doc{{"scim": []string{}}},
}

// locationOf returns the address of the resource that a reply tells of, or "" for none.
// An answer that was kept for an idempotency key is kept without it.
func (s *Server) locationOf(x *exchange, reply *tracker.Reply) string {
	if reply.Location != "" || !reply.Replayed || reply.Outcome != tracker.Created || x.route.dialect != scimDialect {
		return reply.Location
	}
	var made struct {
		ID   string `json:"id"`
		Meta struct {
			Location string `json:"location"`
		} `json:"meta"`
	}
	if err := json.Unmarshal(reply.Body, &made); err != nil || made.Meta.Location != "" || made.ID == "" {
		return made.Meta.Location
	}
	// The request left meta out of the answer, which always has the id.
	return s.baseURL(x) + string(x.target.path) + "/" + url.PathEscape(made.ID)
}

type scimFailure struct {
	Schemas []string `json:"schemas"`
	Status  string   `json:"status"`
	Type    string   `json:"scimType,omitempty"`
	Detail  string   `json:"detail"`
}

// scimType is RFC 7644's word for a failure, which only 400 and 409 have.
func scimType(f *failure) string {
	if f.clientError.Reason != "" || f.statusCode() != http.StatusBadRequest {
		return f.clientError.Reason
	}
	if details, ok := f.clientError.Details.(tracker.BadRequestDetails); ok && len(details.Issues) > 0 && details.Issues[0].Path != "" {
		return "invalidValue"
	}
	return "invalidSyntax"
}
