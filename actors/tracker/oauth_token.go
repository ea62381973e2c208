package tracker

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"switchyard/storage"
)

// OAuthTokenIn is the form of RFC 6749, section 4.4.
type OAuthTokenIn struct {
	Authorization string `header:"Authorization"`
	GrantType     string `json:"grant_type" rules:"required,max=200"`
	ClientID      string `json:"client_id" rules:"max=512"`
	ClientSecret  string `json:"client_secret" rules:"max=512"`
	Scope         string `json:"scope" rules:"max=2000"`
}

// OAuthToken is the answer of RFC 6749, section 5.1.
type OAuthToken struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type" enum:"Bearer"`
	ExpiresIn   int    `json:"expires_in"` // seconds
	Scope       string `json:"scope"`
}

// The errors of RFC 6749, section 5.2.
const (
	oauthInvalidRequest = "invalid_request"
	oauthInvalidClient  = "invalid_client"
	oauthInvalidScope   = "invalid_scope"
	oauthUnsupported    = "unsupported_grant_type"
)

// GrantOAuthToken makes an access token for a client. The client identifier names the
// workspace, so it runs on any node.
var GrantOAuthToken = NewWorkflow[OAuthTokenIn, OAuthToken]("IssueOAuthToken", "Get an access token for an OAuth client", Needs{Level: Public}, grantOAuthToken,
	WithSecret, BodyUpTo(16<<10), Refuses(CodeUnauthorized))

func grantOAuthToken(f Flow, in *OAuthTokenIn) (Reply, error) {
	id, secret, err := in.client()
	if err != nil {
		return Reply{}, err
	}
	switch in.GrantType {
	case "client_credentials":
	case "":
		return Reply{}, oauthRefusal(oauthInvalidRequest, "grant_type is missing.")
	default:
		return Reply{}, oauthRefusal(oauthUnsupported, "The grant_type must be client_credentials.")
	}
	workspace, client, ok := parseClientIdentifier(id)
	credential, err := ParseCredential(secret)
	if !ok || err != nil || credential.Kind != OAuthSecret || credential.Home != workspace || credential.ID != client {
		return Reply{}, errInvalidClient()
	}
	// The secret is compared in a query first: a stranger's request neither waits for its turn
	// among the workspace's commands nor learns that the workspace is there and read-only.
	if _, err := ask[Principal](f, workspace, AuthenticateMakerOp, &MakerIn{LaneMaker: LaneMaker{Token: client.String(), Client: true}, Hash: credential.Hash[:]}); err != nil {
		if hasNoAccess(err) {
			return Reply{}, errInvalidClient()
		}
		return Reply{}, err
	}
	reply, err := f.Command(permitSecret(workspace), workspace, issueAccessTokenOp, &issueAccessTokenIn{
		Client: OAuthClientID(client.String()), Hash: credential.Hash[:], Scope: in.Scope,
	})
	var failure *Error
	if errors.As(err, &failure) && failure.Code == CodeNotFound {
		return Reply{}, errInvalidClient() // the workspace was deleted
	}
	return reply, err
}

func oauthRefusal(reason, message string) *Error {
	return (&Error{Code: CodeBadRequest, Message: message, Hint: "See RFC 6749, section 4.4."}).withReason(reason)
}

// errInvalidClient is the error for an unknown client and for a wrong secret; it is the
// same for both.
func errInvalidClient() *Error {
	return (&Error{
		Code: CodeUnauthorized, Message: "The client is not known, or its secret is wrong.",
		Hint: "Send clientId and clientSecret as they were given when the client was created.",
	}).withReason(oauthInvalidClient)
}

// client returns the credentials of the client: HTTP Basic, or parameters of the body,
// and never both (RFC 6749, section 2.3).
func (in *OAuthTokenIn) client() (id, secret string, err error) {
	if in.Authorization == "" {
		if in.ClientID == "" || in.ClientSecret == "" {
			return "", "", (&Error{
				Code: CodeUnauthorized, Message: "The client's credentials are missing.",
				Hint: "Send client_id and client_secret in the body, or HTTP Basic.",
			}).withReason(oauthInvalidClient)
		}
		return in.ClientID, in.ClientSecret, nil
	}
	scheme, encoded, _ := strings.Cut(in.Authorization, " ")
	if !strings.EqualFold(scheme, "Basic") {
		return "", "", errInvalidClient()
	}
	if in.ClientSecret != "" {
		return "", "", oauthRefusal(oauthInvalidRequest, "The client's credentials are sent in two ways at once.")
	}
	raw, err := base64.StdEncoding.DecodeString(strings.Trim(encoded, " "))
	if err != nil {
		return "", "", errInvalidClient()
	}
	user, password, found := strings.Cut(string(raw), ":")
	// Both are form-encoded separately.
	id, errID := url.QueryUnescape(user)
	secret, errSecret := url.QueryUnescape(password)
	if !found || errID != nil || errSecret != nil {
		return "", "", errInvalidClient()
	}
	if in.ClientID != "" && in.ClientID != id {
		return "", "", oauthRefusal(oauthInvalidRequest, "client_id is not the client that authenticates itself.")
	}
	return id, secret, nil
}

// issueAccessTokenIn is the input of the step in the client's workspace. It has the
// hash of the secret, so the secret itself is not sent to another node.
type issueAccessTokenIn struct {
	Client OAuthClientID `json:"client"`
	Hash   []byte        `json:"hash"`
	Scope  string        `json:"scope"`
}

var issueAccessTokenOp = NewCommand[issueAccessTokenIn, OAuthToken]("IssueAccessToken", "Make an access token", Needs{}, issueAccessToken)

func issueAccessToken(tx *Tx, in *issueAccessTokenIn) (Reply, error) {
	id, ok := storage.ParseID(in.Client)
	if !ok {
		return Reply{}, errInvalidClient()
	}
	secret, err := tx.oauthClient(id, in.Hash)
	if err != nil {
		return Reply{}, err
	}
	permissions, scope, err := narrow(secret, in.Scope)
	if err != nil {
		return Reply{}, err
	}
	text, err := tx.addAccessToken(in.Client, permissions)
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, OAuthToken{AccessToken: text, TokenType: "Bearer", ExpiresIn: int(accessLife.Seconds()), Scope: scope})
}

// oauthClient returns a client whose secret has a hash.
func (v *View) oauthClient(id storage.ID, hash []byte) (*oauthSecret, error) {
	row, err := oauthSecrets.Get(v, storage.Key(nil).DescID(id))
	if err != nil {
		return nil, fmt.Errorf("read an OAuth client: %w", err)
	}
	if row == nil || len(hash) != len(Credential{}.Hash) || !(&Credential{Hash: [32]byte(hash)}).matches(row.Value.Hash) {
		return nil, errInvalidClient()
	}
	return &row.Value, nil
}

// narrow returns the permissions of an access token. Words of the scope that are
// permissions select among the client's; the others must be registered scopes of the
// client and have no effect here.
func narrow(client *oauthSecret, scope string) (Permissions, string, error) {
	var asked Permissions
	named := false
	words := strings.Fields(scope)
	for _, word := range words {
		bits, permission := permissionWords[word]
		switch {
		case permission && client.Permissions.Includes(bits):
			asked |= bits
			named = true
		case permission:
			return 0, "", oauthRefusal(oauthInvalidScope, "The client's permissions do not include all of the scope.")
		case !slices.Contains(client.Scopes, word):
			return 0, "", oauthRefusal(oauthInvalidScope, "The scope has a word that is neither a permission nor one of the client's scopes.")
		}
	}
	if !named {
		asked = client.Permissions
		words = append(permissionNames(asked), words...)
	}
	return asked, strings.Join(words, " "), nil
}
