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

// perSecond is a rate on the command line: a number, or a size, in a second, or off. The
// zero value is a flag that was not given, and off is negative.
type perSecond int

// mostPerSecond is the highest rate; sums of rates stay within an int.
const mostPerSecond = 1 << 40

// UnmarshalText reads a rate.
func (r *perSecond) UnmarshalText(text []byte) error {
	if string(text) == "off" {
		*r = -1
		return nil
	}
	var n byteSize
	if err := n.UnmarshalText(text); err != nil || n == 0 || n > mostPerSecond {
		return fmt.Errorf("%q is not a rate: give a number, or one with KiB, MiB or GiB, for each second, or off", text)
	}
	*r = perSecond(n)
	return nil
}
