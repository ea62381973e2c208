// Package signin signs people in with an OpenID Connect provider: the authorization code flow
// with PKCE, for a server that has a client secret.
//
// A sign-in begins with Begin, which gives the provider's address and a ticket. The browser
// keeps the ticket in a cookie and brings it back with the provider's answer, which Finish
// checks. The ticket is encrypted under a key that follows from the client secret, so any node
// can finish a sign-in that another one has begun, and nothing is stored.
//
// Cookies, sessions and the search for the member are elsewhere, in packages httpapi and
// tracker. The package has no goroutines.
package signin
