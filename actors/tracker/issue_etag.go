package tracker

import (
	"strconv"
	"strings"
)

// etags are the tags of the first versions, which most records never exceed.
var etags = func() (tags [64]string) {
	for i := range tags {
		tags[i] = `"` + strconv.Itoa(i) + `"`
	}
	return tags
}()

// etag returns the ETag of a record: its version in quotes.
func etag(version uint64) string {
	if version < uint64(len(etags)) {
		return etags[version]
	}
	return `"` + strconv.FormatUint(version, 10) + `"`
}

// shownETag returns the ETag of an issue as it was shown: without its parent it is
// another representation of the same version.
func shownETag(version uint64, whole bool) string {
	tag := etag(version)
	if !whole {
		tag = tag[:len(tag)-1] + `.p"`
	}
	return tag
}

// tagListed reports whether the value of an If-Match or If-None-Match header, a list of
// tags or "*", covers tag. Weak tags count only in a weak comparison (RFC 9110, section
// 8.8.3.2). Other text covers nothing.
func tagListed(header, tag string, weak bool) bool {
	for part := range strings.SplitSeq(header, ",") {
		part = strings.Trim(part, " \t")
		if part == "*" {
			return true
		}
		if rest, ok := strings.CutPrefix(part, "W/"); ok {
			if !weak {
				continue
			}
			part = rest
		}
		if part == tag {
			return true
		}
	}
	return false
}

// requireMatch returns PRECONDITION_FAILED if If-Match does not have the present
// version.
func requireMatch(ifMatch string, version uint64) error {
	if ifMatch == "" || tagListed(ifMatch, etag(version), false) || tagListed(ifMatch, shownETag(version, false), false) {
		return nil
	}
	return &Error{Code: CodePreconditionFailed, Message: "The issue has changed since the version that If-Match names.", Hint: "Get the issue again, look at its changes, and repeat the request with its new ETag."}
}
