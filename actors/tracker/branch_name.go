package tracker

import (
	"strings"
	"unicode"

	json "github.com/goccy/go-json"
	"golang.org/x/text/unicode/norm"
)

// IssueBranchNameIn identifies an issue.
type IssueBranchNameIn struct {
	ID string `path:"id"`
}

// BranchName is the name suggested for an issue's branch.
type BranchName struct {
	BranchName string `json:"branchName"`
}

// IssueBranchName suggests a name for an issue's branch.
var IssueBranchName = NewQuery[IssueBranchNameIn, BranchName]("IssueBranchName", "Suggest a branch name for an issue", Needs{Read, "issues"}, issueBranchName, FromSnapshot)

func issueBranchName(v *View, in *IssueBranchNameIn) (Reply, error) {
	row, err := v.issue(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, NotFound("issue")
	}
	body, err := json.Marshal(BranchName{branchName(*row.Value.Identifier, row.Value.Title)})
	return Reply{Body: body}, err
}

// maxBranchName is the longest name suggested, in characters.
const maxBranchName = 60

// branchName makes the name of a branch from an identifier and a title: lower-case
// ASCII letters, digits and single dashes, with no dash at either end (Decision 24).
func branchName(identifier, title string) string {
	b := make([]byte, 0, maxBranchName)
	for _, r := range norm.NFKD.String(identifier + "-" + title) {
		if len(b) >= maxBranchName {
			break
		}
		r = unicode.ToLower(r)
		switch {
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
			b = append(b, byte(r))
		case unicode.Is(unicode.Mn, r): // an accent, which NFKD has separated from its letter
		case spelled[r] != "":
			b = append(b, spelled[r]...)
		case len(b) > 0 && b[len(b)-1] != '-':
			b = append(b, '-')
		}
	}
	return strings.TrimRight(string(b[:min(len(b), maxBranchName)]), "-")
}

// spelled maps letters that NFKD does not decompose to ASCII.
var spelled = map[rune]string{
	'ß': "ss", 'æ': "ae", 'œ': "oe", 'ø': "o", 'ł': "l", 'đ': "d", 'ð': "d", 'þ': "th",
	'ħ': "h", 'ı': "i", 'ĸ': "k", 'ŋ': "ng", 'ŧ': "t", 'ə': "e", 'ɓ': "b", 'ɗ': "d", 'ƒ': "f",
}
