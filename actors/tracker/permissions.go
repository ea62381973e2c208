package tracker

import (
	"strings"
)

// Permissions are what a credential may do at most, in any workspace (Decision
// 10). The bits are ordered so that a wider permission includes the narrower.
type Permissions uint8

// The bits of Permissions.
const (
	PermRead Permissions = 1 << iota
	PermWrite
	PermAdmin
	PermIssuesRead
	PermIssuesWrite
	PermSessionsRead
	PermSessionsWrite
)

// permissionWords gives what each word of a permissions string includes.
var permissionWords = map[string]Permissions{
	"read":           PermRead | PermIssuesRead | PermSessionsRead,
	"write":          PermWrite | PermRead | PermIssuesRead | PermIssuesWrite | PermSessionsRead | PermSessionsWrite,
	"admin":          PermAdmin | PermWrite | PermRead | PermIssuesRead | PermIssuesWrite | PermSessionsRead | PermSessionsWrite,
	"issues:read":    PermIssuesRead,
	"issues:write":   PermIssuesRead | PermIssuesWrite,
	"sessions:read":  PermSessionsRead,
	"sessions:write": PermSessionsRead | PermSessionsWrite,
}

// ParsePermissions reads a comma-separated permissions string and gives it back
// in its stored form: order kept, duplicates dropped. unknown lists the words
// that mean nothing.
func ParsePermissions(s string) (p Permissions, stored string, unknown []string) {
	var kept []string
	seen := map[string]bool{}
	for word := range strings.SplitSeq(s, ",") {
		word = strings.TrimSpace(word)
		bits, ok := permissionWords[word]
		switch {
		case !ok:
			unknown = append(unknown, word)
		case !seen[word]:
			seen[word] = true
			kept = append(kept, word)
			p |= bits
		}
	}
	return p, strings.Join(kept, ","), unknown
}

// Includes tells whether p holds everything q holds.
func (p Permissions) Includes(q Permissions) bool { return p&q == q }

// level is the right the permissions give over everything.
func (p Permissions) level() Level {
	switch {
	case p&PermAdmin != 0:
		return Admin
	case p&PermWrite != 0:
		return Write
	case p&PermRead != 0:
		return Read
	}
	return Identified
}

// Allow tells whether the permissions alone suffice for what an operation needs.
func (p Permissions) Allow(n Needs) bool {
	var enough Permissions
	switch n.Level {
	case Read:
		enough = PermRead
	case Write:
		enough = PermWrite
	case Admin:
		enough = PermAdmin
	}
	switch {
	case n.Resource == EventRights && n.Level == Read:
		enough |= PermIssuesRead | PermSessionsRead
	case n.Resource == "issues" && n.Level == Read:
		enough |= PermIssuesRead
	case n.Resource == "issues" && n.Level == Write:
		enough |= PermIssuesWrite
	case n.Resource == "sessions" && n.Level == Read:
		enough |= PermSessionsRead
	case n.Resource == "sessions" && n.Level == Write:
		enough |= PermSessionsWrite
	// Whoever works in a session may propose; deciding takes the right to the issue.
	case n.Resource == "drafts" && n.Level == Write:
		enough |= PermIssuesWrite | PermSessionsWrite
	}
	return p&enough != 0
}

// permissionNames gives the fewest words that say what permissions are.
func permissionNames(p Permissions) []string {
	names := []string{}
	var said Permissions
	for _, word := range PermissionWords() {
		if bits := permissionWords[word]; p.Includes(bits) && !said.Includes(bits) {
			names = append(names, word)
			said |= bits
		}
	}
	return names
}

// PermissionWords are the words of a permissions string; one that includes another
// comes before it.
func PermissionWords() []string {
	return []string{"admin", "write", "read", "issues:write", "issues:read", "sessions:write", "sessions:read"}
}
