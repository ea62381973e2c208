package tracker

import "fmt"

// Counted returns a number with its noun: "1 issue", "2 issues".
func Counted[N int | int64 | uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
