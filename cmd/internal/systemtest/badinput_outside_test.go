package systemtest

import "strings"

// badOutside is about what ties a workspace to the world outside.
var badOutside = []badRequest{
	{"POST /webhook-subscriptions", object{}, 400, "url"},
	{"POST /webhook-subscriptions", object{"url": 5}, 400, "url"},
	{"POST /webhook-subscriptions", object{"url": "http://example.com/"}, 400, "url"},
	{"POST /webhook-subscriptions", object{"url": "https://127.0.0.1/"}, 400, "url"},
	{"POST /webhook-subscriptions", object{"url": "https://2130706433/"}, 400, "url"},
	{"POST /webhook-subscriptions", object{"url": "https://[::ffff:10.0.0.1]/"}, 400, "url"},
	{"POST /webhook-subscriptions", object{"url": "https://user@example.com/"}, 400, "url"},
	{"POST /webhook-subscriptions", object{"url": "https://example.com/", "events": []string{"issue.*", "isue.created"}}, 400, "events[1]"},
	{"POST /webhook-subscriptions", object{"url": "https://example.com/", "events": []string{}}, 400, "events"},
	{"POST /webhook-subscriptions", object{"url": "https://example.com/", "secret": "short"}, 400, "secret"},
	{"PATCH /webhook-subscriptions/" + noID, object{"isActive": "yes"}, 400, "isActive"},
	{"PATCH /webhook-subscriptions/" + noID, object{"isActive": false}, 404, ""},
	{"POST /webhook-subscriptions/" + noID + "/test", nil, 404, ""},
	{"POST /webhook-subscriptions/x/rotate-secret", nil, 404, ""},
	{"GET /webhook-subscriptions/" + noID + "/deliveries?limit=0", nil, 400, "query.limit"},
	{"POST /webhook-subscriptions/" + noID + "/deliveries/" + noID + "/redeliver", nil, 404, ""},

	{"POST /support-channels", object{"type": "pigeon", "name": "x"}, 400, "type"},
	{"POST /support-channels", object{"type": "chatapp1", "name": "", "config": object{}}, 400, "name"},
	{"POST /support-channels", object{"type": "chatapp1", "name": "x", "config": object{"wings": "2"}}, 400, "config.wings"},
	{"PATCH /support-channels/" + noID, object{"name": "x"}, 404, ""},

	{"GET /tickets?status=shut", nil, 400, "query.status"},
	{"PATCH /tickets/" + noID, object{"status": "shut"}, 400, "status"},
	{"PATCH /tickets/" + noID, object{"status": "closed"}, 404, ""},
	{"POST /tickets/" + noID + "/messages", object{}, 400, "body"},
	{"POST /tickets/" + noID + "/messages", object{"body": strings.Repeat("x", 65537)}, 400, "body"},
	{"POST /tickets/" + noID + "/issue", object{}, 404, ""},
	{"POST /tickets", object{"subject": "x"}, 405, ""},

	{"POST /deals", object{}, 400, "name"},
	{"POST /deals", object{"name": "x", "amount": -1, "currency": "E1R"}, 400, "amount currency"},
	{"PATCH /deals/" + noID, object{"stage": ""}, 400, "stage"},
	{"DELETE /deals/" + noID, nil, 404, ""},

	{"PUT /inbound-secrets/mail", object{"secret": strings.Repeat("x", 257)}, 400, "secret"},
	{"DELETE /inbound-secrets/none", nil, 404, ""},
	{"PUT /inbound-routes/pigeon/x", nil, 400, "path.kind"},
	{"PUT /inbound-routes/sms/call-me", nil, 400, "path.key"},
	{"PUT /inbound-routes/vcs1/no-slash", nil, 400, "path.key"},
	{"DELETE /inbound-routes/sms/+15550199", nil, 404, ""},

	{"POST /oauth-clients", object{}, 400, "name"},
	{"POST /oauth-clients", object{"name": "x", "permissions": "everything"}, 400, "permissions"},
	{"POST /oauth-clients", object{"name": "x", "redirectUris": []string{"nowhere"}}, 400, "redirectUris[0]"},
	{"PATCH /oauth-clients/" + noID, object{"name": "x"}, 404, ""},
	{"POST /scim/connections", object{}, 400, "scopes"},
	{"POST /scim/connections", object{"scopes": []string{"scim.users.read"}, "expiresInDays": 366}, 400, "expiresInDays"},
	{"DELETE /scim/connections/" + noID, nil, 404, ""},
}
