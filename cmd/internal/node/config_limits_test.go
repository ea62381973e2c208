package node

import (
	"testing"

	"switchyard/actors/tracker"
)

func TestConfig_WorkspaceLimits(t *testing.T) {
	t.Parallel()
	loose, strict := tracker.Limits{Bytes: looseBytes, AnswerBytes: looseAnswerBytes}, tracker.Limits{Bytes: strictBytes, AnswerBytes: strictAnswerBytes}
	none, some := uint64(0), uint64(5)
	for name, c := range map[string]struct {
		cfg  Config
		want tracker.Limits
	}{
		"loopback":       {Config{HTTP: "127.0.0.1:8080"}, loose},
		"behind a proxy": {Config{HTTP: "127.0.0.1:8080", PublicURL: "https://tracker.example.com"}, strict},
		"any address":    {Config{HTTP: "0.0.0.0:8080"}, strict},
		"flags":          {Config{HTTP: "0.0.0.0:8080", LimitBytes: &none, LimitAnswerBytes: &some}, tracker.Limits{AnswerBytes: 5}},
	} {
		if got := c.cfg.workspaceLimits(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
