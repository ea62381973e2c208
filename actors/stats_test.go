package actors

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"switchyard/actors/tracker"
)

func TestCollector(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.mustCount(workspaceNumber(1), 1)
	if _, err := b.do(workspaceNumber(1), countUp, &countIn{Large: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.do(workspaceNumber(1), readCount, &tracker.None{}); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(b.engine.Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			values[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	for name, want := range map[string]float64{
		"switchyard_commands_total":       2,
		"switchyard_queries_total":        1,
		"switchyard_batches_total":        2,
		"switchyard_batch_commands_total": 2,
		"switchyard_batch_ops_total":      3,
		"switchyard_active_actors":        1,
		"switchyard_unanswered_commands":  0,
		"switchyard_refused_total":        0,
	} {
		if got, ok := values[name]; !ok || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if n := values["switchyard_batch_bytes_total"]; n < 1<<20 {
		t.Errorf("%v bytes in batches", n)
	}
}
