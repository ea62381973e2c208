package main

import (
	"fmt"
	"strconv"
	"strings"
)

// byteSize is a number of bytes on the command line: 1048576, 1024KiB or 1MiB.
type byteSize uint64

// mostBytes is more than any disk has, and little enough to reckon with.
const mostBytes = 1 << 60

// UnmarshalText reads a size.
func (b *byteSize) UnmarshalText(text []byte) error {
	number, unit := string(text), uint64(1)
	for i, suffix := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if rest, found := strings.CutSuffix(number, suffix); found {
			number, unit = rest, 1<<(10*(i+1))
		}
	}
	n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 64)
	if err != nil || n > mostBytes/unit {
		return fmt.Errorf("%q is not a size: give bytes, or a number with KiB, MiB, GiB or TiB", text)
	}
	*b = byteSize(n * unit)
	return nil
}
