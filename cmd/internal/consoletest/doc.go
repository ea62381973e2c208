// Package consoletest drives the console in a real Chromium, as people do: it finds what is on a page by
// role and accessible name, presses keys, clicks and reads. The service behind it is the real binary.
//
// A visitor (visitor_test.go) is one person with a browser profile of their own. Its watch (watch_test.go)
// fails the test if a page logs an error, breaks its Content-Security-Policy, asks another host, or gets an
// HTTP error that the test does not expect. All visitors share one Chromium process, which TestMain ends.
//
// The tests need Debian's package chromium, or another Chromium or Chrome. Without a browser they are skipped
// and say so. SWITCHYARD_CHROMIUM names another program than the one found in PATH.
//
// TestVisit is the visit that docs/console.md describes. Its pictures are the goldens of docs/console, and
// those of the other pages are in testdata/pictures; -update writes them anew.
package consoletest
