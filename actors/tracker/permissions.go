package tracker

import (
	"strings"
)

// Permissions are the most that a credential may do, in any workspace (Decision 10). A
// wider permission has the bits of those that it includes.
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

// permissionWords maps each word of a permissions string to the permissions that it
// includes.
var permissionWords = map[string]Permissions{
	"read":           PermRead | PermIssuesRead | PermSessionsRead,
	"write":          PermWrite | PermRead | PermIssuesRead | PermIssuesWrite | PermSessionsRead | PermSessionsWrite,
	"admin":          PermAdmin | PermWrite | PermRead | PermIssuesRead | PermIssuesWrite | PermSessionsRead | PermSessionsWrite,
	"issues:read":    PermIssuesRead,
	"issues:write":   PermIssuesRead | PermIssuesWrite,
	"sessions:read":  PermSessionsRead,
	"sessions:write": PermSessionsRead | PermSessionsWrite,
}

// ParsePermissions parses a comma-separated permissions string. It returns the
// permissions, the string in its stored form, in the same order without duplicates, and
// the words that are unknown.
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

// Includes reports whether p holds everything q holds.
func (p Permissions) Includes(q Permissions) bool { return p&q == q }

// level returns the right that the permissions give to all resources.
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

// Allow reports whether the permissions alone suffice for an operation.
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
	// A credential for sessions may make drafts; to decide on one takes the right to
	// its issue.
	case n.Resource == DraftRights && n.Level == Write:
		enough |= PermIssuesWrite | PermSessionsWrite
	}
	return p&enough != 0
}

// permissionNames returns the smallest list of words for p.
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

// PermissionWords returns the words of a permissions string; a word comes before those
// that it includes.
func PermissionWords() []string {
	return []string{"admin", "write", "read", "issues:write", "issues:read", "sessions:write", "sessions:read"}
}
