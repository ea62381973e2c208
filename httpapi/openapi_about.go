package httpapi

import (
	"fmt"
	"slices"
	"strings"

	"switchyard/actors/tracker"
)

// aboutTags describes the operations of each tag.
var aboutTags = map[string]string{
	"workspaces":            "Workspaces, each a tenant of its own.",
	"export":                "A workspace as a file, which another service can take in.",
	"import":                "The way of an exported workspace into another one.",
	"tokens":                "Workspace tokens: the credentials of people and agents.",
	"members":               "The people of a workspace and their roles.",
	"teams":                 "Teams, which issues belong to and are numbered by.",
	"issues":                "Issues, and their comments, attachments, grants, shares and dispatches.",
	"triage":                "Issues that wait for triage.",
	"comments":              "Comments on issues, and answers to them.",
	"labels":                "Labels of issues.",
	"projects":              "Projects, which group issues towards a goal.",
	"cycles":                "Cycles, which group issues by time.",
	"templates":             "Templates, whose fields are used where the creation of an issue leaves them out.",
	"attachments":           "Files of issues.",
	"capture":               "Web pages as issues.",
	"issue-analytics":       "Issues counted by group, and burndowns of cycles.",
	"shared-issues":         "Issues that a link shows without a credential.",
	"agents":                "The agents that sessions are given to.",
	"agent":                 "Sessions of agents: dispatch, claim, log, report, and their tools over the Model Context Protocol.",
	"holds":                 "Holds, which keep sessions from being claimed.",
	"budgets":               "Budgets, which limit what agents use.",
	"usage":                 "What agents have used.",
	"retention":             "How long a workspace keeps what is over.",
	"drafts":                "Comments and changes that are proposed, and published or discarded by somebody else.",
	"support-channels":      "Channels that customers write on.",
	"tickets":               "Conversations with customers.",
	"deals":                 "Deals with customers.",
	"inbound-secrets":       "The secrets that calls of providers are signed with.",
	"inbound-routes":        "The workspace that a telephone number or repository belongs to, for the calls of providers.",
	"webhooks":              "Signed calls of any provider.",
	"helpdesk1":             "Signed calls of a help desk.",
	"support":               "Signed calls of a provider of text messages.",
	"vcs1":                  "Signed calls of a provider of repositories.",
	"webhook-subscriptions": "Subscriptions of URLs to the workspace's events, and the log of deliveries.",
	"oauth-clients":         "OAuth clients, which get short-lived access tokens.",
	"oauth":                 "OAuth 2.0: access tokens and metadata. Errors are those of RFC 6749.",
	"scim":                  "Provisioning by SCIM 2.0 (RFC 7644), and the connections of identity providers. Errors of the SCIM base are those of RFC 7644.",
	"audit":                 "Administrative acts: who changed rights, limits and connections.",
	"events":                "The log of all changes: in pages, by long poll, or as a stream.",
	"cluster":               "The nodes of the cluster, for its operator.",
	"console":               "The session of a browser that shows the console. Its cookie counts with the header X-Switchyard-Console: 1 only, which pages of other origins can't send. Programs send a token in Authorization and need no session.",
	"service":               "Health, readiness and the description of the API.",
}

// tagService is that of the server's own paths.
const tagService = "service"

func (d *describer) tagList() []doc {
	tags := make([]doc, 0, len(d.tags))
	for _, tag := range d.tags {
		described := doc{"name": tag}
		if about := aboutTags[tag]; about != "" {
			described["description"] = about
		}
		tags = append(tags, described)
	}
	return tags
}

// aboutOperation describes, from an operation's declaration, who may call it and its
// special properties.
func aboutOperation(rt *route) string {
	op := rt.Op
	says := []string{aboutNeeds(op)}
	say := func(when bool, text string) {
		if when {
			says = append(says, text)
		}
	}
	say(op.Lane, "A lane token may use it for its own session.")
	say(op.LongPoll, "It can wait for a change, for as long as the request asks.")
	say(op.Streams, "A request that accepts text/event-stream is answered with a stream that does not end.")
	say(op.Lines && !rt.image && op != opWorkspaceRows, "The answer is a stream of lines.")
	say(op == opWorkspaceRows, "The answer is a line of JSON and then blocks of rows, see docs/move.md.")
	say(rt.image, "The answer is one or more lines of JSON and then the image, see docs/backup.md.")
	say(op.Secret && op.Kind != tracker.Query && op != tracker.CreateShare, "The answer contains a secret that is shown only once.")
	say(op == opOpenConsole, "The answer sets the cookie of a session. The token is a workspace token or the operator's. Without X-Switchyard-Console: 1 it is 403.")
	say(op == opConsole, "A 401 has details.signIn, the ways to sign in.")
	say(op == opEndConsole, "With everywhere=true it ends all console sessions of the same user or agent. The operator's can't be ended all at once.")
	say(op.Strict, "Unknown properties of the body are refused.")
	say(op.MaxBody > 0, fmt.Sprintf("The body may have up to %d KiB.", op.MaxBody>>10))
	say(slices.ContainsFunc(rt.plan.query, func(f *field) bool { return f.name == "cursor" }), "A page has a nextCursor if more follow.")
	say(slices.ContainsFunc(rt.plan.header, func(f *field) bool { return strings.EqualFold(f.name, "If-Match") }), "If-Match makes the change conditional.")
	return strings.Join(says, " ")
}

func aboutNeeds(op *tracker.Op) string {
	if op.SCIM != 0 {
		return "Needs the token of a SCIM connection with the scope " + op.SCIM.String() + "."
	}
	if op.Callers != "" {
		return "Needs " + op.Callers + "."
	}
	switch op.Needs.Level {
	case tracker.Public:
		if op.Onboarding {
			return "Needs no credential while onboarding is open, and the operator's token otherwise."
		}
		return "Needs no credential of the service."
	case tracker.Identified:
		return "Needs any valid credential."
	case tracker.Operator:
		return "Needs the operator's token."
	case tracker.Admin:
		return "Needs the owner or admin role in the workspace, and the permission admin."
	}
	needs := "Needs the permission " + permissionsFor(op.Needs)
	if op.Also != (tracker.Needs{}) {
		needs += ", and " + permissionsFor(op.Also)
	}
	return needs + "."
}

// permissionsFor names the permissions of which a token must have one.
func permissionsFor(needs tracker.Needs) string {
	right := map[tracker.Level]string{tracker.Read: "read", tracker.Write: "write"}[needs.Level]
	switch needs.Resource {
	case "":
		return right
	case tracker.EventRights:
		return "read, issues:read or sessions:read; the answer has the events that the permission is for"
	case tracker.DraftRights:
		return "write, issues:write or sessions:write"
	}
	return fmt.Sprintf("%s or %s:%s", right, needs.Resource, right)
}

// withoutUnused drops those of the shared parts of a kind that nothing refers to.
func withoutUnused(kind string, parts doc, users ...any) doc {
	used := map[string]bool{}
	var look func(any)
	look = func(node any) {
		switch node := node.(type) {
		case doc:
			if ref, ok := node["$ref"].(string); ok {
				used[strings.TrimPrefix(ref, "#/components/"+kind+"/")] = true
			}
			for _, child := range node {
				look(child)
			}
		case []doc:
			for _, child := range node {
				look(child)
			}
		}
	}
	for _, user := range users {
		look(user)
	}
	for name := range parts {
		if !used[name] {
			delete(parts, name)
		}
	}
	return parts
}

// webhooks describes what subscriptions are sent, an entry for each type of event.
func (d *describer) webhooks() (doc, error) {
	event, err := d.output(deliveredType)
	if err != nil {
		return nil, err
	}
	text := func(name, description string) doc {
		return doc{"name": name, "in": "header", "required": true, "description": description, "schema": doc{"type": "string"}}
	}
	headers := []doc{
		text("X-Tracker-Event", "The event's type."),
		text("X-Tracker-Delivery", "The delivery's id, the same for each try."),
		text("X-Tracker-Timestamp", "When this try was signed: seconds since 1970."),
		text("X-Tracker-Signature", "The HMAC-SHA256, in hexadecimal, over the timestamp, a dot and the body, by the secret; two with a comma between while a secret is being rotated."),
		text("webhook-id", "The delivery's id, as Standard Webhooks has it."),
		text("webhook-timestamp", "The timestamp, as Standard Webhooks has it."),
		text("webhook-signature", "The signatures, as Standard Webhooks has them."),
	}
	all := doc{}
	for _, name := range tracker.WebhookEventTypes() {
		id := "On"
		for part := range strings.SplitSeq(name, ".") {
			id += strings.ToUpper(part[:1]) + part[1:]
		}
		all[name] = doc{"post": doc{
			"operationId": id, "summary": "Deliver " + name, "tags": []string{"webhook-subscriptions"}, "security": []doc{{}},
			"description": "Sent to every subscription whose events include " + name + ". Any 2xx within 10 seconds is a success; after any other answer the delivery is repeated.",
			"parameters":  headers,
			"requestBody": doc{"required": true, "content": doc{"application/json": doc{"schema": doc{"allOf": []doc{event, {"type": "object", "properties": doc{"type": doc{"const": name}}}}}}}},
			"responses":   doc{"2XX": doc{"description": "The delivery succeeded. The body is ignored."}, "410": doc{"description": "Makes the subscription inactive."}},
		}}
	}
	return all, nil
}
