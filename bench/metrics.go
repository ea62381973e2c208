package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// counters reads the metrics of a node, those with labels summed up.
func counters(ctx context.Context, url string) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("bench: read the metrics: %w", err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("bench: read the metrics: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("bench: read the metrics: %s", answer.Status)
	}
	return parseCounters(io.LimitReader(answer.Body, largestAnswer))
}

func parseCounters(r io.Reader) (map[string]float64, error) {
	sums := map[string]float64{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, " ")
		if i := strings.IndexByte(line, '{'); i >= 0 {
			end := strings.LastIndexByte(line, '}')
			if end < i {
				continue
			}
			name, value = line[:i], strings.TrimSpace(line[end+1:])
		} else if !ok {
			continue
		}
		value, _, _ = strings.Cut(value, " ") // a timestamp may follow
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			sums[name] += n
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("bench: read the metrics: %w", err)
	}
	return sums, nil
}

// perCommand tells what a command wrote on average between two readings.
func perCommand(before, after map[string]float64) (writes, bool) {
	delta := func(name string) float64 { return after[name] - before[name] }
	commands := delta("switchyard_batch_commands_total")
	if commands <= 0 {
		commands = delta("switchyard_commands_total")
	}
	keys, bytes := delta("switchyard_batch_ops_total"), delta("switchyard_batch_bytes_total")
	if commands <= 0 || keys <= 0 || bytes <= 0 {
		return writes{}, false
	}
	return writes{Keys: max(1, int(keys/commands+0.5)), Bytes: max(1, int(bytes/commands+0.5))}, true
}
