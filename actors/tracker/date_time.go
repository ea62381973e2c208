package tracker

import (
	"regexp"
	"strings"
	"time"
)

// dateTime is the date-time of RFC 3339, section 5.6, in capitals.
var dateTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// ParseDateTime reads the date and time of a request, or returns false if it is not one of
// RFC 3339. time.Parse also takes an hour of one digit, a comma in front of the fraction
// and an offset of 24 hours, and no small t and z. There are no leap seconds.
func ParseDateTime(text string) (time.Time, bool) {
	text = strings.ToUpper(text)
	if !dateTime.MatchString(text) {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	return at, err == nil
}
