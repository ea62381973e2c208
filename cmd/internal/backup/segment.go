package backup

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// logDir is the folder of the segments of logs.
const logDir = "log/"

const segmentSuffix = ".log"

// segment is a file with consecutive entries of a shard's log. All of this is in its name.
type segment struct {
	cluster     string
	shard       int
	first, last uint64 // indexes of its entries
	// from is when the first entry was appended. Every write that was acknowledged before until has
	// an index of at most last.
	from, until time.Time
	sum         string // by which the content is proved, see Archive.sumName
	sealed      bool
	// ours is set once the key has been found to be that of the segment, and unusable if it is not, or if the
	// segment is damaged. Neither is in the name.
	ours, unusable bool
}

// sumName is the part of a name that follows from the SHA-256 of the content.
func (a *Archive) sumName(sum string) string {
	if a.key != nil {
		return a.key.name(sum)
	}
	return sum
}

func (s *segment) name() string {
	name := fmt.Sprintf("%s%s-%04d-%020d-%020d-%s-%s-%s%s", logDir, s.cluster, s.shard, s.first, s.last,
		s.from.UTC().Format(momentLayout), s.until.UTC().Format(momentLayout), s.sum, segmentSuffix)
	if s.sealed {
		name += sealedSuffix
	}
	return name
}

// parseSegment returns the segment of a name; false if it is not one that name makes.
func parseSegment(name string) (segment, bool) {
	var s segment
	rest, ok := strings.CutPrefix(name, logDir)
	rest, s.sealed = strings.CutSuffix(rest, sealedSuffix)
	rest, ok2 := strings.CutSuffix(rest, segmentSuffix)
	parts := strings.Split(rest, "-")
	const fields = 6 // behind the cluster, whose id may have hyphens
	n := len(parts) - fields
	if !ok || !ok2 || n < 1 {
		return s, false
	}
	var errs [5]error
	s.cluster = strings.Join(parts[:n], "-")
	s.shard, errs[0] = strconv.Atoi(parts[n])
	s.first, errs[1] = strconv.ParseUint(parts[n+1], 10, 64)
	s.last, errs[2] = strconv.ParseUint(parts[n+2], 10, 64)
	s.from, errs[3] = time.Parse(momentLayout, parts[n+3])
	s.until, errs[4] = time.Parse(momentLayout, parts[n+4])
	s.sum = parts[n+5]
	if _, err := hex.DecodeString(s.sum); err != nil || errors.Join(errs[:]...) != nil || s.shard < 0 || s.first < 1 || s.last < s.first {
		return s, false
	}
	return s, s.name() == name
}

// segments lists the segments in the archive that its key can be for. The order is that of their
// names.
func (a *Archive) segments(ctx context.Context) ([]segment, error) {
	files, err := a.place.List(ctx, logDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the segments of logs in %s: %w", a, err)
	}
	var all []segment
	for _, file := range files {
		if s, ok := parseSegment(file.Name); ok && s.sealed == (a.key != nil) {
			all = append(all, s)
		}
	}
	return all, nil
}
