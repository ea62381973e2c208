package tracker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// A small change of a large issue must not cause large requests to every subscriber.
func TestBriefDelivery(t *testing.T) {
	t.Parallel()
	const most = 100 << 10
	event := func(data, changes int) string {
		text := `{"id":"e","type":"issue.updated","organizationId":"w","sequence":12,"createdAt":"2026-11-20T21:30:00.123Z","actor":{"id":"ann <x>","type":"user"},"data":{"description":"` + strings.Repeat("é", data/2) + `"}`
		if changes > 0 {
			text += `,"changes":{"description":{"from":null,"to":"` + strings.Repeat("x", changes) + `"}}`
		}
		return text + "}"
	}
	for name, row := range map[string]struct {
		data, changes               int
		dataOmitted, changesOmitted bool
	}{
		"small":                  {100, 100, false, false},
		"each just small enough": {most - 20, most - 50, false, false},
		"large data":             {most, 10, true, false},
		"large data alone":       {most, 0, true, false},
		"large changes":          {10, most, false, true},
		"both":                   {1 << 20, 1 << 20, true, true},
	} {
		whole := event(row.data, row.changes)
		body, err := BriefDelivery([]byte(whole), "https://yard.example", most)
		if err != nil {
			t.Fatal(err)
		}
		if !row.dataOmitted && !row.changesOmitted {
			if string(body) != whole {
				t.Errorf("%s: the event was changed", name)
			}
			continue
		}
		if len(body) > 2*most {
			t.Errorf("%s: %d bytes", name, len(body))
		}
		described := json.NewDecoder(bytes.NewReader(body))
		described.DisallowUnknownFields()
		if err := described.Decode(new(DeliveredEvent)); err != nil {
			t.Errorf("%s is not as described: %v", name, err)
		}
		var want, got map[string]any
		if err := json.Unmarshal([]byte(whole), &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		for part, omitted := range map[string]bool{"data": row.dataOmitted, "changes": row.changesOmitted} {
			told, there := got[part+"Omitted"].(map[string]any)
			if there != omitted || omitted && (told["url"] != "https://yard.example/workspaces/w/events?after=11&limit=1" || told["bytes"].(float64) <= most) {
				t.Errorf("%s: %sOmitted is %v", name, part, told)
			}
			if omitted {
				want[part] = nil
			}
			delete(got, part+"Omitted")
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %.300s", name, body)
		}
	}
}
