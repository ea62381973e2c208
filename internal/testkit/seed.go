package testkit

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Seed returns the seed of a test's random choices: that of SWITCHYARD_TEST_SEED, or else a random one. The
// test's log tells it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("SWITCHYARD_TEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SWITCHYARD_TEST_SEED=%d repeats the choices of this run", seed)
	return seed
}
