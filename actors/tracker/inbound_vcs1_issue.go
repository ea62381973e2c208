package tracker

import (
	"cmp"
	stdjson "encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"switchyard/storage"
)

const (
	// maxNamed limits the identifiers looked up for one event, and maxAbout the issues
	// that it changes.
	maxNamed = 50
	maxAbout = 20
	maxURL   = 2048
	// usualHost is the address before a repository's name at the usual host.
	usualHost = "https://github.com/"
)

// vcsPayload is the part of an event that is used.
type vcsPayload struct {
	Action     string `json:"action"`
	Repository struct {
		FullName string `json:"full_name"`
		HTMLURL  string `json:"html_url"`
	} `json:"repository"`
	// These are decoded only for events about them.
	PullRequest stdjson.RawMessage `json:"pull_request"`
	CheckSuite  stdjson.RawMessage `json:"check_suite"`
}

type vcsPullRequest struct {
	HTMLURL string `json:"html_url"`
	State   string `json:"state"`
	Draft   bool   `json:"draft"`
	Merged  bool   `json:"merged"`
	Title   string `json:"title"`
	Body    string `json:"body"`
	Head    struct {
		Ref string `json:"ref"`
	} `json:"head"`
}

type vcsCheckSuite struct {
	HeadBranch   string `json:"head_branch"`
	HeadSHA      string `json:"head_sha"`
	Status       string `json:"status"`
	Conclusion   string `json:"conclusion"`
	PullRequests []struct {
		Number int64 `json:"number"`
		Head   struct {
			Ref string `json:"ref"`
			SHA string `json:"sha"`
		} `json:"head"`
	} `json:"pull_requests"`
}

// vcsPull is a pull request with the fields that issues show, and the texts that may
// name issues.
type vcsPull struct {
	URL    string   `json:"url"`
	State  string   `json:"state"`
	Branch string   `json:"branch"`
	Texts  []string `json:"texts"`
	// Anew is set if there are new commits, whose checks are unknown.
	Anew bool `json:"anew"`
}

func (p *vcsPullRequest) pull(action string) *vcsPull {
	state := "open"
	switch {
	case p.Merged:
		state = "merged"
	case p.State == "closed":
		state = "closed"
	case p.Draft:
		state = "draft"
	}
	return &vcsPull{
		URL: webURL(p.HTMLURL), State: state, Branch: clean(p.Head.Ref, maxThread), Anew: action == "synchronize",
		Texts: []string{clean(p.Head.Ref, maxThread), clean(p.Title, maxSubject), clean(p.Body, maxMessageText)},
	}
}

// webURL returns an address, or "" if an issue can't have it.
func webURL(text string) string {
	if text = clean(text, maxURL+1); len(text) > maxURL || !strings.HasPrefix(text, "https://") && !strings.HasPrefix(text, "http://") || strings.ContainsAny(text, " \t\r\n\"<>") {
		return ""
	}
	return text
}

// vcsChecks is the state of the checks of some commits.
type vcsChecks struct {
	State  string `json:"state"`
	Branch string `json:"branch"`
	// URLs and Heads are the addresses and branches of the pull requests whose last commit
	// was checked. An address is only its end, such as "/pull/7", if the event lacks the
	// repository's.
	URLs  []string `json:"urls"`
	Heads []string `json:"heads,omitempty"`
	// Other is set if the checks are of pull requests, but not of their last commit.
	Other bool `json:"other"`
}

func (s *vcsCheckSuite) checks(repository string) *vcsChecks {
	c := &vcsChecks{State: checkState(s.Status, s.Conclusion), Branch: clean(s.HeadBranch, maxThread)}
	for _, p := range s.PullRequests {
		if p.Head.SHA != "" && s.HeadSHA != "" && p.Head.SHA != s.HeadSHA {
			continue
		}
		if len(c.URLs) == maxAbout {
			break
		}
		end := "/pull/" + strconv.FormatInt(p.Number, 10)
		c.URLs = append(c.URLs, cmp.Or(webURL(repository+end), end))
		if head := clean(p.Head.Ref, maxThread); head != "" && head != c.Branch {
			c.Heads = append(c.Heads, head)
		}
	}
	c.Other = len(s.PullRequests) > 0 && len(c.URLs) == 0
	return c
}

// checkState returns the state of checks as issues show it. Checks without a status are completed
// if they have a conclusion.
func checkState(status, conclusion string) string {
	if status != "completed" && (status != "" || conclusion == "") {
		return "pending"
	}
	switch conclusion {
	case "success":
		return "success"
	case "neutral", "skipped", "stale":
		return "neutral"
	}
	return "failure" // includes those that timed out, were canceled, or need an action
}

// tellPull writes a pull request's state into the issues that it names.
func (tx *Tx) tellPull(p *vcsPull, repository string) ([]IssueID, error) {
	if p.URL == "" {
		return nil, nil
	}
	named, err := tx.namedIssues([]string{p.Branch}, repository, p.Texts)
	if err != nil {
		return nil, err
	}
	return tx.changeNamed(named, func(t *Issue) bool {
		another := t.PRURL != nil && *t.PRURL != p.URL
		if another && (p.State == "closed" || p.State == "merged") && t.PRState != nil && (*t.PRState == "open" || *t.PRState == "draft") {
			return false // the issue's own pull request is not finished
		}
		if another || p.Anew {
			t.PRCheckState = nil
		}
		t.PRURL, t.PRState = &p.URL, &p.State
		return true
	})
}

// tellChecks writes the state of checks into the issues with their pull request or
// branch.
func (tx *Tx) tellChecks(c *vcsChecks, repository string) ([]IssueID, error) {
	if c.Other {
		return nil, nil
	}
	branches := append([]string{c.Branch}, c.Heads...)
	named, err := tx.namedIssues(branches, repository, branches)
	if err != nil {
		return nil, err
	}
	for _, address := range c.URLs {
		if strings.HasPrefix(address, "/") {
			address = usualHost + repository + address
		}
		keys, err := tx.rowKeys(issueByPR, storage.Key(nil).Str(address), maxAbout)
		if err != nil {
			return nil, err
		}
		named = addKeys(named, keys)
	}
	return tx.changeNamed(named, func(t *Issue) bool {
		if t.PRURL != nil && len(c.URLs) > 0 && !slices.ContainsFunc(c.URLs, func(address string) bool { return strings.HasSuffix(*t.PRURL, address) }) {
			return false // another pull request's checks
		}
		t.PRCheckState = &c.State
		return true
	})
}

// changeNamed changes the issues with these keys, except archived ones, and returns those that
// were changed. It stops when the batch is full.
func (tx *Tx) changeNamed(keys [][]byte, change func(*Issue) bool) (about []IssueID, err error) {
	work := tx.newWorkBudget()
	for _, pk := range keys {
		if work.spent() {
			break
		}
		row, err := issues.Get(tx, pk)
		if err != nil {
			return nil, fmt.Errorf("read an issue: %w", err)
		}
		if row == nil {
			continue
		}
		if row.Value.ArchivedAt != nil {
			if err := tx.tellArchived(row, change); err != nil {
				return nil, err
			}
			continue
		}
		changed := *row
		if !change(&changed.Value) {
			continue
		}
		if _, err := tx.writeIssue(row, &changed); err != nil {
			return nil, err
		}
		about = append(about, row.Value.ID)
	}
	return about, nil
}

// namedIssues returns the primary keys of the issues whose identifiers occur in the
// texts, case-insensitively, or which have one of the branches.
func (tx *Tx) namedIssues(branches []string, repository string, texts []string) (keys [][]byte, err error) {
	looked := map[string]bool{}
	for _, text := range texts {
		eachIdentifier(text, func(identifier string) bool {
			if identifier = strings.ToUpper(identifier); looked[identifier] {
				return true
			}
			if len(looked) == maxNamed {
				return false
			}
			looked[identifier] = true
			var id storage.ID
			if id, err = tx.issueByIdentifier(identifier); err != nil {
				return false
			}
			if id != (storage.ID{}) {
				keys = addKeys(keys, [][]byte{issueKey(id)})
			}
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	for _, branch := range branches {
		if branch == "" {
			continue
		}
		same, err := tx.rowKeys(issueByBranch, storage.Key(nil).Str(branch), maxAbout)
		if err != nil {
			return nil, err
		}
		for _, pk := range same {
			row, err := issues.Get(tx, pk)
			if err != nil {
				return nil, fmt.Errorf("read an issue: %w", err)
			}
			// Branches of different repositories may have the same name.
			if row != nil && (row.Value.Repo == nil || sameRepo(*row.Value.Repo, repository)) {
				keys = addKeys(keys, [][]byte{pk})
			}
		}
	}
	return keys, nil
}

// addKeys appends the keys that are not in the list yet, up to maxAbout in all.
func addKeys(keys, more [][]byte) [][]byte {
	for _, pk := range more {
		known := slices.ContainsFunc(keys, func(k []byte) bool { return string(k) == string(pk) })
		if !known && len(keys) < maxAbout {
			keys = append(keys, pk)
		}
	}
	return keys
}

// sameRepo reports whether an issue's repo, a name or an address, is the given
// repository.
func sameRepo(repo, fullName string) bool {
	repo, fullName = strings.ToLower(strings.TrimSuffix(strings.TrimRight(repo, "/"), ".git")), strings.ToLower(fullName)
	rest, ok := strings.CutSuffix(repo, fullName)
	return ok && (rest == "" || strings.HasSuffix(rest, "/") || strings.HasSuffix(rest, ":"))
}

// eachIdentifier calls fn for every part of text that may be an issue's identifier,
// until fn returns false: letters and digits, a hyphen and a number, with no letter or
// digit before or after.
func eachIdentifier(text string, fn func(string) bool) {
	word := func(c byte) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c >= 0x80
	}
	start := 0 // start of the present run of letters and digits
	for i := range len(text) {
		if word(text[i]) {
			continue
		}
		key := text[start:i]
		start = i + 1
		if text[i] != '-' || len(key) == 0 || len(key) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r >= 0x80 }) {
			continue
		}
		end := i + 1
		for end < len(text) && '0' <= text[end] && text[end] <= '9' {
			end++
		}
		if end == i+1 || end-i > 20 || end < len(text) && word(text[end]) {
			continue
		}
		if !fn(text[i-len(key) : end]) {
			return
		}
	}
}
