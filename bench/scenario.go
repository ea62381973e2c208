package bench

import (
	"context"
	"strconv"
	"time"
)

// scenario is one path through the service under load.
type scenario struct {
	name string
	// about says in a few words what a request does.
	about string
	// limit names the result whose rate this one is judged by, at the same number of
	// connections; empty when there is none. The ratio should reach target.
	limit  string
	target float64
	// measure takes measurements other than the rate of requests and their answers, and
	// adds its results itself. rateTarget and p50Target are their targets.
	measure    func(ctx context.Context, r *run, s *scenario, connections int) error
	rateTarget float64
	p50Target  time.Duration
	// openP99Target is the p99 that an open load at OpenShare of the rate should stay below.
	openP99Target time.Duration
	status        int
	// filled scenarios need the read workspace's issues, those with work the issues
	// that sessions are about.
	filled, work bool
	// prepare makes other records that the scenario needs; it is called before each
	// measurement.
	prepare  func(ctx context.Context, w *world) error
	requests func(w *world, connection int) func() []byte
	// beside starts the load that runs during the measurement, for example deliveries;
	// the scenario's limit is its own rate without that load. The function that beside
	// returns stops the load and describes it. nil: there is no such load.
	beside func(ctx context.Context, w *world) (func() string, error)
	// talks replaces status and requests where they depend on answers.
	talks func(w *world, connection int) talk
	// alone scenarios measure themselves, once a run, and have figures and no rate.
	alone func(ctx context.Context, r *run) ([]Figure, error)
}

// talk is a connection's requests where each follows from the answers before it.
type talk struct {
	next  func() (request []byte, status int) // and the status of a good answer
	heard func(body []byte) error             // sees every good answer
}

// scenarios in the order they run in. One file each.
var scenarios = []scenario{
	createMany, bulk, createHot, createFollowed, createHooked, deliver, commitToDelivery, cycle, cycleHot, get, poll, listSmall, list, listFilters, searchOne, searchTwo, similar, analytics, createLarge,
	listStatus, listReady, dispatchClaim, release, claimParked, fair, waiting,
}

// Scenarios returns the names of all scenarios, in the order they run in.
func Scenarios() []string {
	names := make([]string, len(scenarios))
	for i := range scenarios {
		names[i] = scenarios[i].name
	}
	return names
}

// Names of the limits measured beside the scenarios.
const (
	emptyLimit  = "limit: empty handler"
	pebbleLimit = "limit: pebble sync"
)

// numberDigits is how long the numbers of marked titles are.
const numberDigits = 12

// number writes n into the whole of spot.
func number(spot []byte, n int64) {
	var text [20]byte
	s := strconv.AppendInt(text[:0], n, 10)
	for i := range spot {
		spot[i] = '0'
	}
	copy(spot[len(spot)-len(s):], s)
}
