package transfer

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// clocksApart is how far the clocks of two clusters may differ for a move: the rows have times by the
// clock of the old one. Imports take ids that are ahead by as much.
const clocksApart = time.Minute

// clusterState is what a move has to know of a cluster.
type clusterState struct {
	ClusterID string `json:"clusterId"`
	Format    int    `json:"format"`
	// ahead is the time by which its clock is at least ahead of this machine's; it is below 0 if the
	// clock is behind.
	ahead time.Duration
}

// cluster reads the state of the cluster.
func (c *Client) cluster(ctx context.Context) (*clusterState, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	began := time.Now()
	res, err := c.send(ctx, http.MethodGet, "/cluster", "", nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	state := new(clusterState)
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(state); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", c.base, err)
	}
	if date, err := http.ParseTime(res.Header.Get("Date")); err == nil {
		state.ahead = aheadOf(date, began, time.Now())
	}
	return state, nil
}

// aheadOf returns by how much a clock is ahead at least that said a date, in whole seconds, between
// two moments.
func aheadOf(date, began, ended time.Time) time.Duration {
	switch latest := date.Add(time.Second); {
	case date.After(ended):
		return date.Sub(ended)
	case latest.Before(began):
		return latest.Sub(began)
	}
	return 0
}
