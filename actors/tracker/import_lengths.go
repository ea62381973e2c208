package tracker

import (
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// importedInputs has, by type of line, the inputs of the operations that make such records. A
// text of an imported record may be as long as the longest that these take for a field of
// its name.
var importedInputs = map[string][]any{
	exportWorkspace:        {NewWorkspaceIn{}},
	"team":                 {CreateTeamIn{}, PatchTeamIn{}},
	"member":               {AddMemberIn{}},
	"scim_user":            {SCIMUserIn{}},
	"scim_group":           {SCIMGroupIn{}},
	"token":                {CreateTokenIn{}},
	"oauth_client":         {CreateOAuthClientIn{}},
	"label":                {CreateLabelIn{}},
	"project":              {CreateProjectIn{}},
	"cycle":                {CreateCycleIn{}},
	"template":             {CreateTemplateIn{}},
	"agent":                {CreateAgentIn{}},
	"issue":                {CreateIssueIn{}, PatchIssueIn{}},
	"comment":              {CreateCommentIn{}},
	"session":              {DispatchIssueIn{}, RegisterSessionIn{}, ReportSessionIn{}},
	"session_instructions": {DispatchIssueIn{}},
	"activity":             {ActivityFields{}},
	"draft":                {CreateDraftIn{}},
	"support_channel":      {CreateChannelIn{}},
	"ticket_message":       {CreateTicketMessageIn{}},
	"deal":                 {CreateDealIn{}},
	"webhook_subscription": {CreateWebhookIn{}},
}

// maxImportText is the length of any other text of a record, in characters. No text that
// the service stores is longer.
const maxImportText = maxDescription

// importLengths has the lengths of texts by type of line and path, such as "data.title" and
// "data.labelIds[]".
var importLengths = lengthsOf(importedInputs)

func lengthsOf(inputsOf map[string][]any) map[string]map[string]int {
	// The bytes of an attachment are checked as such.
	all := map[string]map[string]int{
		"attachment": {"data.contentBase64": maxImportBody, "data.name": maxAttachmentName},
		"closing":    {"data.pull.prUrl": maxURL},
	}
	for line, inputs := range inputsOf {
		all[line] = map[string]int{}
		for _, in := range inputs {
			addLengths(all[line], reflect.TypeOf(in))
		}
	}
	return all
}

// addLengths adds the lengths that the rules of an input give to texts and lists of texts.
func addLengths(lengths map[string]int, in reflect.Type) {
	for i := range in.NumField() {
		f := in.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		of := f.Type
		if of.Kind() == reflect.Struct {
			if value, is := of.FieldByName("Value"); is {
				of = value.Type // of an Opt
			}
		}
		switch {
		case f.Anonymous:
			addLengths(lengths, f.Type)
		case name != "" && of.Kind() == reflect.String:
			addLength(lengths, "data."+name, f.Tag.Get("rules"))
		case name != "" && of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.String:
			addLength(lengths, "data."+name+"[]", f.Tag.Get("items"))
		}
	}
}

func addLength(lengths map[string]int, path, rules string) {
	for rule := range strings.SplitSeq(rules, ",") {
		if text, is := strings.CutPrefix(rule, "max="); is {
			n, _ := strconv.Atoi(text)
			lengths[path] = max(lengths[path], n)
		}
	}
}

// lengthAt returns the length that the text at a path may have.
func lengthAt(lengths map[string]int, path string) int {
	if at := strings.LastIndexByte(path, '['); at >= 0 && strings.HasSuffix(path, "]") {
		path = path[:at] + "[]"
	}
	if n, is := lengths[path]; is {
		return n
	}
	return maxImportText
}

// isLonger reports whether a text has more than n characters.
func isLonger(text string, n int) bool {
	return len(text) > n && utf8.RuneCountInString(text) > n
}
