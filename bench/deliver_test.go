package bench

import (
	"strings"
	"testing"
	"time"
)

func TestDeliver_CountsWhatArrives(t *testing.T) {
	t.Parallel()
	f := newHookedNode(t)
	report, said, err := hookedRun(t, f)
	if err != nil || report.Err() != nil {
		t.Fatalf("%v, %v\n%s", err, report.Err(), said)
	}
	for _, r := range report.Results {
		if r.Scenario == deliver.name && (r.Requests%subscriptions != 0 || r.Rate <= 0 || r.RateTarget != 5000) {
			t.Errorf("%+v", r)
		}
	}
	for _, want := range []string{"5000/s", "p50 - ms", "p50 < 5", "beside create-hooked: ", "deliveries/s"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in\n%s", want, said)
		}
	}
}

func TestDeliver_LostDeliveriesMakeItInvalid(t *testing.T) {
	t.Parallel()
	f := newHookedNode(t)
	f.deliverer.losesAfter = 2 * subscriptions
	cfg := quick(t, f.url)
	cfg.Scenarios, cfg.Connections = []string{deliver.name}, []int{2}
	report, err := Run(t.Context(), cfg, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Err(); err == nil || !strings.Contains(err.Error(), "did not come") {
		t.Errorf("the report's fault is %v", err)
	}
}

func TestTracks_FollowWhatWasMeasured(t *testing.T) {
	t.Parallel()
	ms := func(n int) int64 { return int64(time.Duration(n) * time.Millisecond) }
	tr := newTracks(10, time.Second, 1)
	for i, one := range []struct {
		sent, answered int
		arrived        [subscriptions]int
	}{
		{1, 2, [subscriptions]int{900, 900, 900}},     // within the warm-up
		{100, 110, [subscriptions]int{105, 112, 114}}, // the first of them before the answer
		{200, 0, [subscriptions]int{210, 210, 210}},   // failed, as far as its sender knows
		{300, 310, [subscriptions]int{312, 0, 314}},   // one did not come
	} {
		to := &tr.of[i]
		to.sent.Store(ms(one.sent))
		to.answered.Store(ms(one.answered))
		for h, at := range one.arrived {
			to.arrived[h].Store(ms(at))
		}
	}
	answer, sending := tr.samples(&sample{elapsed: time.Second}, ms(50))
	if answer.requests != 5 || answer.errors != 1 || sending.requests != 5 || sending.errors != 1 || !strings.Contains(answer.fault, "1 deliveries") {
		t.Errorf("%+v, %+v", answer, sending)
	}
	if least, most := answer.latency.Min(), answer.latency.Max(); least != lowestLatency || !near(float64(most), 4000, 5) {
		t.Errorf("from the answer %d to %d us, want 1 to 4000", least, most)
	}
	if least, most := sending.latency.Min(), sending.latency.Max(); !near(float64(least), 5000, 5) || !near(float64(most), 14_000, 10) {
		t.Errorf("from the sending %d to %d us, want 5000 to 14000", least, most)
	}
}

func TestTracks_KnowCreatesByTheirNumbers(t *testing.T) {
	t.Parallel()
	tr := newTracks(10, time.Second, 2)
	w := &world{host: "host:1", hooked: workspace{id: "a", token: "t"}}
	first, second := tr.creates(w, 0), tr.creates(w, 1)
	first()
	_, body, _ := strings.Cut(string(second()), "\r\n\r\n")
	tr.answered(1, nil)
	tr.arrived([]byte("/2"), []byte(`{"type":"issue.created","data":`+body+`}`))
	for _, c := range []struct{ path, body string }{
		{"/2", body}, // a repeat
		{"/9", body},
		{"/", body},
		{"/0", `{"data":{"title":"Is anybody there?"}}`},
		{"/0", `{"data":{"title":"Track 00000000000x waits"}}`},
		{"/0", `{"data":{"title":"Track 000000099999 waits"}}`},
		{"/0", `{"data":{"title":"Track 1`},
	} {
		tr.arrived([]byte(c.path), []byte(c.body))
	}
	one := &tr.of[1]
	if one.sent.Load() == 0 || one.answered.Load() < one.sent.Load() || one.arrived[2].Load() < one.answered.Load() || one.arrived[0].Load() != 0 {
		t.Errorf("%+v", one)
	}
	if tr.of[0].sent.Load() == 0 || tr.of[0].answered.Load() != 0 || tr.answers.Load() != 1 {
		t.Errorf("%+v", &tr.of[0])
	}
	if n := len(newTracks(1e9, time.Hour, 1).of); n != mostTracks {
		t.Errorf("%d tracks", n)
	}
}
