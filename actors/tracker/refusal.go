package tracker

// errLacksRight returns the error for a caller without the right that an operation needs.
func errLacksRight(needs Needs) error {
	switch needs.Level {
	case Operator:
		return Forbidden("This is for the operator of the service.", "Use the root token.")
	case Admin:
		return Forbidden("This needs the admin right in the workspace.", "Use a token with the admin permission, of an owner or admin of the workspace.")
	case Write:
		return Forbidden("This needs the right to write "+neededFor(needs)+".", "Use a token with the write permission"+orResource(needs, "write")+".")
	}
	return Forbidden("This needs the right to read "+neededFor(needs)+".", "Use a token with the read permission"+orResource(needs, "read")+".")
}

func neededFor(needs Needs) string {
	switch needs.Resource {
	case "":
		return "in the workspace"
	case EventRights:
		return "what there are events of"
	case DraftRights:
		return "issues or sessions"
	}
	return needs.Resource
}

func orResource(needs Needs, right string) string {
	switch needs.Resource {
	case "":
		return ""
	case EventRights, DraftRights:
		return ", or with issues:" + right + " or sessions:" + right
	}
	return " or with " + needs.Resource + ":" + right
}
