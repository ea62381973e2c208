package bench

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestLoad_TellsItsProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := loadOn(&server{takes: steady(10 * time.Millisecond)}, 4)
		l.warmup, l.lasts = time.Second, 2*time.Second
		for range 2 { // a load that is run again begins anew
			var reports []Progress
			l.progress = progressOf(func(p Progress) { reports = append(reports, p) }, 2, 7, "get")
			l.run(t.Context())
			if len(reports) < 3 || !reports[len(reports)-1].Done {
				t.Fatalf("reports %+v", reports)
			}
			for i, p := range reports {
				if p.Step != 2 || p.Steps != 7 || p.Name != "get" || p.Lasts != 3*time.Second || p.Errors != 0 || p.Done != (i == len(reports)-1) {
					t.Errorf("%d: %+v", i, p)
				}
				if whole := time.Duration(i+1) * time.Second; !p.Done && (p.Elapsed != whole || !near(p.Rate, 400, 8) || !near(float64(p.Answers), 400*whole.Seconds(), 8)) {
					t.Errorf("after %s: %+v", whole, p)
				}
			}
		}
	})
}

func TestProgressOf_Nobody(t *testing.T) {
	t.Parallel()
	if progressOf(nil, 1, 2, "get") != nil {
		t.Error("a function reports progress to nobody")
	}
}
