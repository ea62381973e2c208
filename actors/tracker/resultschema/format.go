package resultschema

import (
	"errors"
	"net/netip"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/net/idna"
)

// formats are the formats that the library lacks, or checks too loosely. Their checks
// take time in proportion to the text.
var formats = func() map[string]*jsonschema.Format {
	all := map[string]*jsonschema.Format{}
	for name, fits := range map[string]func(string) bool{
		"ipv4":          isIPv4,
		"hostname":      isHostname,
		"idn-hostname":  isInternationalHostname,
		"email":         isEmail,
		"idn-email":     isInternationalEmail,
		"uri":           func(text string) bool { return isURI(text, false) && known("uri", text) },
		"uri-reference": func(text string) bool { return isURI(text, false) && known("uri-reference", text) },
		"iri":           func(text string) bool { return isURI(text, true) && known("iri", text) },
		"iri-reference": func(text string) bool { return isURI(text, true) && known("iri-reference", text) },
	} {
		all[name] = &jsonschema.Format{Name: name, Validate: func(v any) error {
			if text, ok := v.(string); ok && !fits(text) {
				return errFormat
			}
			return nil
		}}
	}
	return all
}()

var errFormat = errors.New("is not of the format")

// library has the library's own checks, by the name of their format.
var library = func() map[string]*jsonschema.Format {
	all := map[string]*jsonschema.Format{}
	for _, name := range [...]string{"hostname", "email", "uri", "uri-reference", "iri", "iri-reference"} {
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft7)
		if err := c.AddResource(home, map[string]any{"format": name}); err != nil {
			panic(err)
		}
		all[name] = c.MustCompile(home).Format
	}
	return all
}()

// known reports whether the library accepts a text as a format. The library does not
// know future address formats in URIs (RFC 3986, section 3.2.2), so they are replaced
// by one that it knows.
func known(format, text string) bool {
	if open := strings.Index(text, "//[v"); open >= 0 {
		text = text[:open] + "//[::1" + skipFutureAddress(text[open+len("//["):])
	} else if open := strings.Index(text, "//[V"); open >= 0 {
		text = text[:open] + "//[::1" + skipFutureAddress(text[open+len("//["):])
	}
	return library[format].Validate(text) == nil
}

// skipFutureAddress returns the text after a future address at its beginning, or the
// text itself.
func skipFutureAddress(text string) string {
	address, rest, ok := strings.Cut(text, "]")
	version, name, dotted := strings.Cut(address[1:], ".")
	if !ok || !dotted || version == "" || name == "" || strings.Trim(version, "0123456789abcdefABCDEF") != "" {
		return text
	}
	return "]" + rest
}

func isIPv4(text string) bool {
	at, err := netip.ParseAddr(text)
	return err == nil && at.Is4()
}

// names checks labels by the tables of IDNA.
var names = idna.New(idna.ValidateLabels(true), idna.CheckHyphens(true), idna.CheckJoiners(true), idna.BidiRule(), idna.StrictDomainName(true), idna.VerifyDNSLength(true))

// maxHostname limits a host's name in characters and, encoded, in bytes.
const maxHostname = 253

func isHostname(text string) bool {
	if strings.HasSuffix(text, ".") || library["hostname"].Validate(text) != nil {
		return false
	}
	for label := range strings.SplitSeq(text, ".") {
		if len(label) > 3 && label[2:4] == "--" {
			if _, err := names.ToUnicode(strings.ToLower(label)); err != nil {
				return false
			}
		}
	}
	return true
}

// fullStops replaces the dots of other scripts, which also separate labels (RFC 3490,
// section 3.1).
var fullStops = strings.NewReplacer("\u3002", ".", "\uff0e", ".", "\uff61", ".")

func isInternationalHostname(text string) bool {
	if len(text) > 4*maxHostname {
		return false
	}
	name, err := names.ToASCII(fullStops.Replace(text))
	return err == nil && isHostname(name)
}

// isEmail requires a name in front of the @, and a host or an address behind it.
func isEmail(text string) bool {
	at := strings.LastIndexByte(text, '@')
	if at < 1 || strings.HasSuffix(text, ".") {
		return false
	}
	if address, ok := strings.CutPrefix(text[at+1:], "["); ok && !strings.HasPrefix(address, "IPv6:") && !isIPv4(strings.TrimSuffix(address, "]")) {
		return false
	}
	return library["email"].Validate(text) == nil
}

// isInternationalEmail is like isEmail for all scripts: characters that are not ASCII
// are allowed in front of the @ (RFC 6531, section 3.3), and international names behind
// it.
func isInternationalEmail(text string) bool {
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return false
	}
	name := strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf {
			return 'x'
		}
		return r
	}, text[:at])
	host := text[at+1:]
	if isInternationalHostname(host) {
		host = "example.com"
	}
	return isEmail(name + "@" + host)
}

// uriByte has the characters of RFC 3986, section 2, except for the percent sign.
var uriByte = func() (table [utf8.RuneSelf]bool) {
	for _, c := range []byte("-._~:/?#[]@!$&'()*+,;=0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		table[c] = true
	}
	return table
}()

// isURI reports whether a text consists of the characters of a URI, or of an IRI (RFC
// 3987, section 2.2), with two hexadecimal digits after each percent sign.
func isURI(text string, international bool) bool {
	authority, rest := splitAuthority(text)
	if strings.ContainsAny(rest, "[]") || strings.Count(authority, "@") > 1 {
		return false
	}
	digits := 0 // digits still expected
	query := false
	for _, r := range text {
		switch {
		case digits > 0:
			if r >= utf8.RuneSelf || !strings.ContainsRune("0123456789abcdefABCDEF", r) {
				return false
			}
			digits--
		case r == '%':
			digits = 2
		case r < utf8.RuneSelf:
			if !uriByte[r] {
				return false
			}
			query = query || r == '?'
		case !international || !isUCS(r) && !(query && isPrivate(r)):
			return false
		}
	}
	return digits == 0
}

// splitAuthority splits the authority from a URI: the part between // and the path.
func splitAuthority(text string) (authority, rest string) {
	start := strings.Index(text, "//")
	if start < 0 || strings.ContainsAny(text[:start], "/?#") || start > 0 && text[start-1] != ':' {
		return "", text
	}
	end := len(text)
	if n := strings.IndexAny(text[start+2:], "/?#"); n >= 0 {
		end = start + 2 + n
	}
	return text[start:end], text[:start] + text[end:]
}

// isUCS reports whether a character is allowed anywhere in an IRI.
func isUCS(r rune) bool {
	switch {
	case r < 0x10000:
		return 0xA0 <= r && r <= 0xD7FF || 0xF900 <= r && r <= 0xFDCF || 0xFDF0 <= r && r <= 0xFFEF
	case r < 0xE1000:
		return r&0xFFFF <= 0xFFFD && r < 0xE0000
	}
	return r <= 0xEFFFD
}

// isPrivate reports whether a character is allowed in the query of an IRI only.
func isPrivate(r rune) bool {
	return 0xE000 <= r && r <= 0xF8FF || r >= 0xF0000 && r&0xFFFF <= 0xFFFD
}
