package resultschema

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestFormats(t *testing.T) {
	t.Parallel()
	label := strings.Repeat("a", 63)
	for format, texts := range map[string]struct{ good, bad []string }{
		"uri": {
			[]string{
				"http://yard.example/a?b#c", "HTTP://u:p@yard.example:80/", "ftp://10.0.0.1/%7e%2F", "http://[2001:db8::1]:80", "http://[::ffff:10.0.0.1]", "http://[v1.fe]/", "http://[V7.a:b]",
				"mailto:a@b", "urn:a:b", "tel:+1-2", "http://-.~_!$&'()*+,;=:%40:80%2f::::::@yard.example",
			},
			[]string{
				"", "/a", "//yard.example/", "a b", "http://yard.example/a b", "http://yard.example/a\\b", `http://yard.example/"`, "http://yard.example/<a>", "http://yard.example/{a}", "http://yard.example/^",
				"http://yard.example/`", "http://yard.example/a|b", "http://yard.example/\u00e4", "http://yard.example/\x7f", "http://yard.example/\n", "http://yard.example/%", "http://yard.example/%f", "http://yard.example/%g1",
				"http://yard.example/%\uff11\uff11", "http://2001:db8::1/", "http://[::1", "http://[::g]", "http://[v.fe]", "http://[vg.fe]", "http://[v1.]", "http://[v1]", "http://yard.example/[a]", "http:/[::1]", "http://yard.example/?[a]",
				"http://a@b@yard.example/", "http://yard.example:port/", ":// a", "1http://yard.example",
			},
		},
		"uri-reference": {
			[]string{"", "/a", "//yard.example/a", "a?b", "#a", "../a", "http://yard.example/", "//[::1]/", "//[v1.fe]/"},
			[]string{"\\\\share", "#a\\b", "a b", "/\u00e4", `"`, "/[a]", "//a@b@yard.example", "%", "a|b"},
		},
		"iri": {
			[]string{"http://yard.example/\u00e4\u4e2d\U0001f600", "http://\u00e4.example/?\ue000", "http://[2001:db8::1]/", "http://[V1.fe]", "http://[v1.fe]"},
			[]string{"/\u00e4", "http://yard.example/\u00e4 b", "http://yard.example/\u0085", "http://yard.example/\ue000", "http://yard.example/\ufdd0", "http://yard.example/\ufffe", "http://yard.example/\U0001fffe", "http://2001:db8::1/", "http://yard.example/<\u00e4>"},
		},
		"iri-reference": {
			[]string{"", "/\u00e4", "//\u00e4.example", "#\u00e4\u00f6"},
			[]string{"\\\\\u00e4", "#\u00e4\\b", "\u00e4 b", "/[\u00e4]"},
		},
		"email": {
			[]string{"a@yard.example", "a~b@yard.example", "~a@yard.example", "a.b+c@yard.example", `"a b"@yard.example`, `"a@b"@yard.example`, "a@[127.0.0.1]", "a@[IPv6:::1]", "a@b"},
			[]string{"", "2962", "@yard.example", "a@", "a", "@", ".a@yard.example", "a.@yard.example", "a..b@yard.example", "a b@yard.example", "a@yard.example.", "a@-yard.example", "a@[+1.2.3.4]", "a@[127.0.0.300]", "a@[127.0.0.1", "\u00e4@yard.example", "a@b=c"},
		},
		"idn-email": {
			[]string{"a@yard.example", "\uc2e4\ub840@\uc2e4\ub840.example", "\u00e4.b@yard.example", "a@\u00e4.example"},
			[]string{"", "2962", "\u00e4", "@\u00e4.example", "\u00e4@", "a\uff20yard.example", "\u00e4 b@yard.example", "\u00e4@-\u00e4.example", "\u00e4@a..b"},
		},
		"ipv4": {
			[]string{"0.0.0.0", "10.20.30.40", "255.255.255.255"},
			[]string{"", "+1.2.3.4", "1.2.3.+4", "-0.0.0.0", "1.2.3", "1.2.3.4.5", "256.0.0.1", "01.2.3.4", "1.2.3.4/8", "1.2.3.4 ", "0x1.2.3.4", "1..2.3", "16909060", "\u0967.2.3.4", "::1"},
		},
		"hostname": {
			[]string{"yard", "yard.example", "1yard", "y4rd5", "a-b", "a--b.example", label + ".example", "xn--9n2bp8q.xn--9t4b11yi5a", "XN--9N2BP8Q", "xn--ll-0ea"},
			[]string{
				"", ".", "yard.", ".yard", "a..b", "-a", "a-", "a.-b", "a_b", "a b", "\u00e4", "yard\uff0eexample", "yard\n", label + "a", strings.Repeat(label+".", 3) + label, "xn--X", "xn--hello-txk", "ab--cd",
				"xn--02b508i", "xn--a-2hc5h",
			},
		},
		"idn-hostname": {
			[]string{"yard.example", "\uc2e4\ub840.\ud14c\uc2a4\ud2b8", "stra\u00dfe.example", "a\u3002b", "a\uff0eb", "\u0915\u094d\u200d\u0937", "xn--9n2bp8q"},
			[]string{"", ".", "a.", "-a", "\u00e4..b", "\u0903a", "\u0300a", "\u0488a", "\u0915\u200d\u0937", "a\u2495b", "\U0001f600\u2028", "\u00e4_b", strings.Repeat("\u00e4", 63), strings.Repeat("\u00e4", 5000)},
		},
	} {
		s := compile(t, `{"format":"`+format+`"}`)
		for fits, texts := range map[bool][]string{true: texts.good, false: texts.bad} {
			for _, text := range texts {
				value, err := json.Marshal(text)
				if err != nil {
					t.Fatal(err)
				}
				if collected := s.Check(value); (len(collected) == 0) != fits {
					t.Errorf("%s: %.80q fits is %v", format, text, !fits)
				}
			}
		}
		if collected := s.Check([]byte("12")); len(collected) > 0 {
			t.Errorf("%s: a number has no format, but %v", format, collected)
		}
	}
}
