package bench

import (
	"encoding/json"
	"strings"
)

// sampledIssues is how many issues the statistics are taken of.
const sampledIssues = 5000

// textStatistics looks at the first issues that a connection would write.
func textStatistics(workspaces int) TextStatistics {
	s := TextStatistics{Vocabulary: vocabularySize, Issues: sampledIssues}
	w := newIssueWriter(0)
	used := map[string]bool{}
	titles, descriptions, different, bytes := 0, 0, 0, 0
	var body []byte
	for range sampledIssues {
		body = w.appendIssue(body[:0])
		var in struct{ Title, Description string }
		if json.Unmarshal(body, &in) != nil {
			continue
		}
		own := map[string]bool{}
		words := func(text string) int {
			all := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r == ' ' || r == '.' })
			for _, word := range all {
				own[word], used[word] = true, true
			}
			return len(all)
		}
		titles += words(in.Title)
		n := words(in.Description)
		descriptions += n
		s.Longest = max(s.Longest, n)
		different += len(own)
		bytes += len(body)
	}
	s.Title, s.Description = float64(titles)/sampledIssues, float64(descriptions)/sampledIssues
	s.Distinct, s.Bytes, s.Used = float64(different)/sampledIssues, float64(bytes)/sampledIssues, len(used)
	tenants, first := zipf(workspaces), 0
	for range sampledIssues {
		if tenants.draw(w.random) == 0 {
			first++
		}
	}
	s.LargestTenant = float64(first) / sampledIssues
	return s
}
