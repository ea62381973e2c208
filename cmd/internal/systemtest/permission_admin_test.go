package systemtest

// nothing is the id of nothing there is: what is written under it stays as it is.
const nothing = "/" + noID

// ticketOps are about tickets, which the whole workspace sees. {ticket} has become
// the issue; for callers that do not see the issue it has none.
var ticketOps = []matrixOp{
	{name: "tickets", method: "GET", path: "/tickets?limit=100", needs: "read", ok: 200, unseen: 200},
	{name: "ticket", method: "GET", path: "/tickets/{ticket}", needs: "read", ok: 200, unseen: 200, shows: "{id}"},
	{name: "patch a ticket", method: "PATCH", path: "/tickets/{ticket}", body: map[string]any{"status": "pending"}, needs: "write", ok: 200, unseen: 200, shows: "{id}"},
	{name: "link a ticket", method: "PATCH", path: "/tickets/{unlinked}", body: map[string]any{"issueId": "{id}"}, needs: "write", ok: 200, unseen: 400, shows: "{id}", spends: true},
	{name: "ticket's messages", method: "GET", path: "/tickets/{ticket}/messages", needs: "read", ok: 200, unseen: 200},
	{name: "answer a ticket", method: "POST", path: "/tickets/{ticket}/messages", body: map[string]any{"body": "Seen"}, needs: "write", ok: 201, unseen: 201},
	{name: "issue of a ticket that has one", method: "POST", path: "/tickets/{ticket}/issue", body: map[string]any{}, needs: "write", ok: 409, unseen: 409},
	{name: "issue of a ticket in its team", method: "POST", path: "/tickets/{unlinked}/issue", body: map[string]any{"teamId": "{team}"}, needs: "write", ok: 201, unseen: 400, shows: "{team}", inTeam: true, spends: true},
}

// eventOps read the log, where it tells of the issue. {id} and the rest are among the
// first hundred of their types.
var eventOps = []matrixOp{
	{name: "events of issues", method: "GET", path: "/events?types=issue.created&limit=100", needs: "issues:read", ok: 200, unseen: 200, shows: "{id}"},
	{name: "events of comments", method: "GET", path: "/events?types=comment.created&limit=100", needs: "issues:read", ok: 200, unseen: 200, shows: "{comment}"},
	{name: "events of drafts", method: "GET", path: "/events?types=draft.*&limit=100", needs: "issues:read", ok: 200, unseen: 200, shows: "{draft}"},
	{name: "events of sessions", method: "GET", path: "/events?types=session.created&limit=100", needs: "sessions:read", ok: 200, unseen: 200, shows: "{session}"},
	{name: "events of tickets", method: "GET", path: "/events?types=ticket.updated&limit=100", needs: "read", ok: 200, unseen: 200, shows: "{id}"},
}

// adminOps are those of who answers for the workspace: what leaves it, what comes in
// from elsewhere, and who may be let in.
var adminOps = []matrixOp{
	{name: "webhooks", method: "GET", path: "/webhook-subscriptions", needs: "admin", ok: 200},
	{name: "make a webhook", method: "POST", path: "/webhook-subscriptions", body: map[string]any{"url": "https://example.com/"}, needs: "admin", ok: 201},
	{name: "a webhook", method: "GET", path: "/webhook-subscriptions" + nothing, needs: "admin", ok: 404},
	{name: "patch a webhook", method: "PATCH", path: "/webhook-subscriptions" + nothing, body: map[string]any{"isActive": false}, needs: "admin", ok: 404},
	{name: "delete a webhook", method: "DELETE", path: "/webhook-subscriptions" + nothing, needs: "admin", ok: 404},
	{name: "rotate a webhook's secret", method: "POST", path: "/webhook-subscriptions" + nothing + "/rotate-secret", needs: "admin", ok: 404},
	{name: "test a webhook", method: "POST", path: "/webhook-subscriptions" + nothing + "/test", needs: "admin", ok: 404},
	{name: "a webhook's deliveries", method: "GET", path: "/webhook-subscriptions" + nothing + "/deliveries", needs: "admin", ok: 404},
	{name: "redeliver", method: "POST", path: "/webhook-subscriptions" + nothing + "/deliveries" + nothing + "/redeliver", needs: "admin", ok: 404},

	{name: "support channels", method: "GET", path: "/support-channels", needs: "admin", ok: 200},
	{name: "make a support channel", method: "POST", path: "/support-channels", body: map[string]any{"type": "chatapp1", "name": "c", "config": map[string]any{"channelId": "C01"}}, needs: "admin", ok: 201},
	{name: "a support channel", method: "GET", path: "/support-channels" + nothing, needs: "admin", ok: 404},
	{name: "patch a support channel", method: "PATCH", path: "/support-channels" + nothing, body: map[string]any{"name": "c"}, needs: "admin", ok: 404},
	{name: "delete a support channel", method: "DELETE", path: "/support-channels" + nothing, needs: "admin", ok: 404},

	{name: "inbound secrets", method: "GET", path: "/inbound-secrets", needs: "admin", ok: 200},
	{name: "put an inbound secret", method: "PUT", path: "/inbound-secrets/other", body: map[string]any{}, needs: "admin", ok: 200},
	{name: "delete an inbound secret", method: "DELETE", path: "/inbound-secrets/none", needs: "admin", ok: 404},
	{name: "inbound routes", method: "GET", path: "/inbound-routes", needs: "admin", ok: 200},
	{name: "inbound routes of all workspaces", method: "GET", path: "/inbound-routes", bare: true, needs: "operator", ok: 200},
	{name: "audit", method: "GET", path: "/audit", needs: "admin", ok: 200},
	{name: "audit of the cluster", method: "GET", path: "/cluster/audit", bare: true, needs: "operator", ok: 200},
	{name: "import nothing", method: "POST", path: "/cluster/import", bare: true, body: map[string]any{}, needs: "operator", ok: 400},
	{name: "limits of a workspace", method: "GET", path: "/cluster/workspaces/{workspace}/limits", bare: true, needs: "operator", ok: 200},
	{name: "set the limits of a workspace", method: "PUT", path: "/cluster/workspaces/{workspace}/limits", bare: true, body: map[string]any{"limits": map[string]any{}}, needs: "operator", ok: 200},
	{name: "read-only mode of a workspace", method: "GET", path: "/cluster/workspaces/{workspace}/read-only", bare: true, needs: "operator", ok: 200},
	{name: "make no workspace read-only", method: "PUT", path: "/cluster/workspaces" + nothing + "/read-only", bare: true, body: map[string]any{"reason": "r"}, needs: "operator", ok: 404},
	{name: "end a workspace's read-only mode", method: "DELETE", path: "/cluster/workspaces/{workspace}/read-only", bare: true, needs: "operator", ok: 204},
	{name: "read-only mode of the service", method: "GET", path: "/cluster/read-only", bare: true, needs: "operator", ok: 200},
	{name: "end the service's read-only mode", method: "DELETE", path: "/cluster/read-only", bare: true, needs: "operator", ok: 204},
	{name: "load of no node", method: "GET", path: "/cluster/nodes/none/load", bare: true, needs: "operator", ok: 404},
	{name: "image of a shard", method: "GET", path: "/cluster/backup/shards/1", bare: true, needs: "operator", ok: 200},
	{name: "put an inbound route", method: "PUT", path: "/inbound-routes/sms/+15550100", needs: "admin", ok: 200},
	{name: "delete an inbound route", method: "DELETE", path: "/inbound-routes/vcs1/none/none", needs: "admin", ok: 404},

	{name: "OAuth clients", method: "GET", path: "/oauth-clients", needs: "admin", ok: 200},
	{name: "make an OAuth client", method: "POST", path: "/oauth-clients", body: map[string]any{"name": "c"}, needs: "admin", ok: 201},
	{name: "an OAuth client", method: "GET", path: "/oauth-clients" + nothing, needs: "admin", ok: 404},
	{name: "patch an OAuth client", method: "PATCH", path: "/oauth-clients" + nothing, body: map[string]any{"name": "c"}, needs: "admin", ok: 404},
	{name: "delete an OAuth client", method: "DELETE", path: "/oauth-clients" + nothing, needs: "admin", ok: 404},

	{name: "SCIM connections", method: "GET", path: "/scim/connections", needs: "admin", ok: 200},
	{name: "make a SCIM connection", method: "POST", path: "/scim/connections", body: map[string]any{"scopes": []string{"scim.users.read"}}, needs: "admin", ok: 201},
	{name: "delete a SCIM connection", method: "DELETE", path: "/scim/connections" + nothing, needs: "admin", ok: 404},
}

// scimOps are those of the workspace's SCIM base: no token opens it but a
// connection's, which opens nothing else, and the operator's.
var scimOps = []matrixOp{
	{name: "SCIM provider", method: "GET", path: "/scim/v2/{workspace}/ServiceProviderConfig", bare: true, needs: "scim", ok: 200},
	{name: "SCIM resource types", method: "GET", path: "/scim/v2/{workspace}/ResourceTypes", bare: true, needs: "scim", ok: 200},
	{name: "a SCIM resource type", method: "GET", path: "/scim/v2/{workspace}/ResourceTypes/User", bare: true, needs: "scim", ok: 200},
	{name: "SCIM schemas", method: "GET", path: "/scim/v2/{workspace}/Schemas", bare: true, needs: "scim", ok: 200},
	{name: "a SCIM schema", method: "GET", path: "/scim/v2/{workspace}/Schemas/urn:ietf:params:scim:schemas:core:2.0:User", bare: true, needs: "scim", ok: 200},
	{name: "SCIM users", method: "GET", path: "/scim/v2/{workspace}/Users", bare: true, needs: "scim", ok: 200},
	{name: "provision a user", method: "POST", path: "/scim/v2/{workspace}/Users", bare: true, body: map[string]any{"userName": "provisioned"}, needs: "scim", ok: 201},
	{name: "a SCIM user", method: "GET", path: "/scim/v2/{workspace}/Users" + nothing, bare: true, needs: "scim", ok: 404},
	{name: "replace a SCIM user", method: "PUT", path: "/scim/v2/{workspace}/Users" + nothing, bare: true, body: map[string]any{"userName": "other"}, needs: "scim", ok: 404},
	{name: "patch a SCIM user", method: "PATCH", path: "/scim/v2/{workspace}/Users" + nothing, bare: true, body: deactivation, needs: "scim", ok: 404},
	{name: "delete a SCIM user", method: "DELETE", path: "/scim/v2/{workspace}/Users" + nothing, bare: true, needs: "scim", ok: 404},
	{name: "SCIM groups", method: "GET", path: "/scim/v2/{workspace}/Groups", bare: true, needs: "scim", ok: 200},
	{name: "provision a group", method: "POST", path: "/scim/v2/{workspace}/Groups", bare: true, body: map[string]any{"displayName": "Provisioned"}, needs: "scim", ok: 201},
	{name: "a SCIM group", method: "GET", path: "/scim/v2/{workspace}/Groups" + nothing, bare: true, needs: "scim", ok: 404},
	{name: "replace a SCIM group", method: "PUT", path: "/scim/v2/{workspace}/Groups" + nothing, bare: true, body: map[string]any{"displayName": "Other"}, needs: "scim", ok: 404},
	{name: "patch a SCIM group", method: "PATCH", path: "/scim/v2/{workspace}/Groups" + nothing, bare: true, body: renaming, needs: "scim", ok: 404},
	{name: "delete a SCIM group", method: "DELETE", path: "/scim/v2/{workspace}/Groups" + nothing, bare: true, needs: "scim", ok: 404},
}

var (
	deactivation = map[string]any{"Operations": []any{map[string]any{"op": "replace", "path": "active", "value": false}}}
	renaming     = map[string]any{"Operations": []any{map[string]any{"op": "replace", "path": "displayName", "value": "Other"}}}
)

// callOps are the calls of those who have no token: a token helps nobody there.
var callOps = []matrixOp{
	{name: "an access token", method: "POST", path: "/oauth/token", bare: true, body: map[string]any{"grant_type": "client_credentials"}, needs: "public", ok: 415},
	{name: "the authorization server", method: "GET", path: "/.well-known/oauth-authorization-server", bare: true, needs: "public", ok: 200},
	{name: "comms", method: "POST", path: "/webhooks/comms/{workspace}/mail", bare: true, body: map[string]any{}, needs: "public", ok: 401},
	{name: "comms of a source there is not", method: "POST", path: "/webhooks/comms/{workspace}/none", bare: true, body: map[string]any{}, needs: "public", ok: 401},
	{name: "a helpdesk", method: "POST", path: "/helpdesk1/{workspace}", bare: true, body: map[string]any{}, needs: "public", ok: 401},
	{name: "a repository", method: "POST", path: "/vcs1", bare: true, body: map[string]any{}, needs: "public", ok: 401},
	{name: "a text message", method: "POST", path: "/support/sms/inbound", bare: true, body: map[string]any{}, needs: "public", ok: 401},
}
