package httpapi

import (
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
	"pgregory.net/rapid"
)

// TestRouter_AgreesWithTheRules compares the router with a plain search through the
// whole table, for paths made of the table's own words and of values. It finds places
// where the library's tree would hide a route behind another.
func TestRouter_AgreesWithTheRules(t *testing.T) {
	t.Parallel()
	s, err := New(Config{Engine: &fakeEngine{}})
	if err != nil {
		t.Fatal(err)
	}
	paths := make([]string, 0, len(s.routes))
	segments := []string{"x", "-", "", "..", "a%2Fb", "01a1fbc1-39ee-7fe1-9b18-1688c1bb31c9"}
	for _, rt := range s.routes {
		paths = append(paths, rt.Path)
		for word := range strings.SplitSeq(rt.Path, "/") {
			if !strings.Contains(word, "{") && !slices.Contains(segments, word) {
				segments = append(segments, word, word[:len(word)-1], word+"x")
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		// A path of the table with values in it, of which some segments were replaced.
		path := strings.Split(rapid.SampledFrom(paths).Draw(t, "path"), "/")[1:]
		for i, segment := range path {
			if strings.Contains(segment, "{") || rapid.IntRange(0, 5).Draw(t, "replace") == 0 {
				path[i] = rapid.SampledFrom(segments).Draw(t, "segment")
			}
		}
		for range rapid.IntRange(0, 2).Draw(t, "more") {
			path = append(path, rapid.SampledFrom(segments).Draw(t, "segment"))
		}
		uri := "/" + strings.Join(path, "/")
		var tg target
		if tg.parse([]byte(uri)) != targetFine {
			t.Fatalf("%s is not a target", uri)
		}
		var p params
		found := ""
		if place := s.router.find(&tg, &p, new(fasthttp.RequestCtx)); place != nil {
			found = place.routes[0].Path
		}
		if want := bestMatch(paths, path); found != want {
			t.Fatalf("%s leads to %q, not to %q", uri, found, want)
		}
	})
}

// bestMatch returns the path of the table that segments lead to: of those that match,
// the one with a word at the first place where they differ, or else with a parameter
// of one segment.
func bestMatch(paths, segments []string) (best string) {
	for _, path := range paths {
		if matches(path, segments) && (best == "" || rank(path) > rank(best)) {
			best = path
		}
	}
	return best
}

func matches(path string, segments []string) bool {
	pattern := strings.Split(path, "/")[1:]
	for i, want := range pattern {
		if strings.HasSuffix(want, "...}") {
			return len(segments) > i && segments[i] != ""
		}
		if i >= len(segments) || want != segments[i] && (want[0] != '{' || segments[i] == "") {
			return false
		}
	}
	return len(pattern) == len(segments)
}

// rank orders paths that match the same segments.
func rank(path string) string {
	var marks []byte
	for segment := range strings.SplitSeq(path, "/") {
		switch {
		case strings.HasSuffix(segment, "...}"):
			marks = append(marks, '0')
		case strings.HasPrefix(segment, "{"):
			marks = append(marks, '1')
		default:
			marks = append(marks, '2')
		}
	}
	return string(marks)
}
