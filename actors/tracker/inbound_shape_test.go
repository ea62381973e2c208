package tracker

import (
	stdjson "encoding/json"
	"testing"
)

func TestShapeOf_HasASubject(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`5`: "it has the wrong type.", `{"id": {}}`: "id has the wrong type.", `{`: "it can't be read.",
	} {
		var notification struct {
			ID string `json:"id"`
		}
		err := stdjson.Unmarshal([]byte(body), &notification)
		if err == nil {
			t.Fatalf("%s was taken", body)
		}
		if got := shapeOf(err); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}
