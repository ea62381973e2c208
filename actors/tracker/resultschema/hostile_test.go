package resultschema

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// hostile is a schema and a value whose check is as costly as possible.
type hostile struct {
	name, schema, value string
}

func rep(n int, f func(i int) string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = f(i)
	}
	return strings.Join(list, ",")
}

func nest(n int, open, within, end string) string {
	return strings.Repeat(open, n) + within + strings.Repeat(end, n)
}

// hostiles returns inputs that any client could send.
func hostiles() []hostile {
	long := strings.Repeat("x", 250_000)
	return []hostile{
		{"double", `{"allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`, nest(60, `{"a":`, "1", "}")},
		{"double fail", `{"definitions":{"x":{"type":"object","required":["a"]}},"anyOf":[{"properties":{"a":{"$ref":"#"}},"required":["q"]},{"properties":{"a":{"$ref":"#"}},"required":["r"]}]}`, nest(60, `{"a":`, "1", "}")},
		{"doubling refs", `{"definitions":{` + rep(31, func(i int) string {
			return fmt.Sprintf(`"%d":{"allOf":[{"$ref":"#/definitions/%d"},{"$ref":"#/definitions/%d"}]}`, i, i+1, i+1)
		}) + `,"31":{"type":"string"}},"$ref":"#/definitions/0"}`, `"x"`},
		{"doubling anyOf", `{"definitions":{` + rep(30, func(i int) string {
			return fmt.Sprintf(`"%d":{"anyOf":[{"$ref":"#/definitions/%d"},{"$ref":"#/definitions/%d"}]}`, i, i+1, i+1)
		}) + `,"30":{"type":"string"}},"allOf":[{"$ref":"#/definitions/0"}]}`, `1`},
		{"doubling oneOf", `{"definitions":{` + rep(30, func(i int) string {
			return fmt.Sprintf(`"%d":{"oneOf":[{"$ref":"#/definitions/%d"},{"$ref":"#/definitions/%d"}]}`, i, i+1, i+1)
		}) + `,"30":{"type":"string","pattern":"a"}},"allOf":[{"$ref":"#/definitions/0"}]}`, `"b"`},
		{"anyOf wide", `{"items":{"anyOf":[` + rep(400, func(i int) string { return fmt.Sprintf(`{"const":%d}`, i) }) + `]}}`, `[` + rep(19000, func(i int) string { return "-1" }) + `]`},
		{"enum wide", `{"items":{"enum":[` + rep(4000, func(i int) string { return fmt.Sprint(i) }) + `]}}`, `[` + rep(19000, func(i int) string { return fmt.Sprint(i) }) + `]`},
		{"enum arrays", `{"items":{"enum":[` + rep(1000, func(i int) string { return fmt.Sprintf("[%d]", i) }) + `]}}`, `[` + rep(9000, func(i int) string { return fmt.Sprintf("[%d]", i) }) + `]`},
		{"enum fractions", `{"items":{"enum":[0.5]}}`, `[` + rep(19000, func(i int) string { return fmt.Sprintf("%d.5e300", i) }) + `]`},
		{"minimum", `{"items":{"minimum":0,"maximum":5000000}}`, `[` + rep(19000, func(i int) string { return fmt.Sprint(i) }) + `]`},
		{"minimum e", `{"items":{"minimum":0,"maximum":5e300}}`, `[` + rep(19000, func(i int) string { return fmt.Sprintf("%de-399", i) }) + `]`},
		{"multiple", `{"items":{"multipleOf":1.2345678901e-390}}`, `[` + rep(9000, func(i int) string { return fmt.Sprintf("%d.12345678901234567e390", i) }) + `]`},
		{"multiple2", `{"items":{"multipleOf":3}}`, `[` + rep(19000, func(i int) string { return fmt.Sprint(i * 3) }) + `]`},
		{"integer", `{"items":{"type":"integer"}}`, `[` + rep(19000, func(i int) string { return fmt.Sprintf("%d.5e390", i) }) + `]`},
		{"unique", `{"uniqueItems":true}`, `[` + rep(19000, func(i int) string { return fmt.Sprint(i) }) + `]`},
		{"unique frac", `{"uniqueItems":true}`, `[` + rep(19000, func(i int) string { return fmt.Sprintf("%de390", i) }) + `]`},
		{"unique objects", `{"uniqueItems":true}`, `[` + rep(9000, func(i int) string { return fmt.Sprintf(`{"a":%d}`, i) }) + `]`},
		{"unique nested", `{"uniqueItems":true,"items":{"$ref":"#"}}`, nest(60, "[1,", rep(15000, func(i int) string { return fmt.Sprint(i + 5) }), "]")},
		{"unique long", `{"uniqueItems":true,"allOf":[` + rep(300, func(int) string { return `{"uniqueItems":true}` }) + `]}`, `["` + long + `",1]`},
		{"pattern", `{"pattern":"(x+x+)+y"}`, `"` + long + `"`},
		{"pattern big", `{"pattern":"(x?){200}y"}`, `"` + long + `"`},
		{"pattern mid", `{"pattern":"(x?){100}y"}`, `"` + long[:15000] + `"`},
		{"pattern mid2", `{"pattern":"(x?x?x?x?|.x){40}y"}`, `"` + long[:4000] + `"`},
		{"pattern nfa", `{"pattern":"(x|.|[a-z]x)*(x|.|[a-z]x)*y"}`, `"` + long[:50000] + `"`},
		{"pattern nfa2", `{"pattern":"(x|.|[a-z]x)*(x|.|[a-z]x)*y"}`, `"` + long[:90000] + `"`},
		{"pattern unicode", `{"pattern":"(?i)(\\pL|.|\\pN)*y"}`, `"` + strings.Repeat("я", 1500) + `"`},
		{"pattern names", `{"patternProperties":{` + rep(100, func(i int) string { return fmt.Sprintf(`"x%d":true`, i) }) + `}}`, `{` + rep(9000, func(i int) string { return fmt.Sprintf(`"%d":1`, i) }) + `}`},
		{"names", `{"propertyNames":{"pattern":"^[0-9]+$","maxLength":9}}`, `{` + rep(9000, func(i int) string { return fmt.Sprintf(`"%d":1`, i) }) + `}`},
		{"required", `{"items":{"required":[` + rep(4000, func(i int) string { return fmt.Sprintf(`"%d"`, i) }) + `]}}`, `[` + rep(19000, func(i int) string { return "{}" }) + `]`},
		{"required hit", `{"items":{"required":[` + rep(40, func(i int) string { return fmt.Sprintf(`"%d"`, i) }) + `]}}`, `[` + rep(450, func(i int) string { return "{" + rep(40, func(i int) string { return fmt.Sprintf(`"%d":1`, i) }) + "}" }) + `]`},
		{"required 8", `{"items":{"required":[` + rep(2000, func(i int) string { return fmt.Sprintf(`"aaaa%d"`, i) }) + `]}}`, `[` + rep(2000, func(i int) string {
			return "{" + rep(8, func(i int) string { return fmt.Sprintf(`"aaaa%d":1`, i) }) + "}"
		}) + `]`},
		{"regex format", `{"items":{"format":"regex"}}`, `[` + rep(15000, func(i int) string { return fmt.Sprintf(`"(?i)\\pL\\PL\\pM%d"`, i) }) + `]`},
		{"regex format2", `{"items":{"format":"regex"}}`, `[` + rep(500, func(i int) string { return fmt.Sprintf(`"%s%d"`, strings.Repeat("(a?|b[^c-f])+", 35), i) }) + `]`},
		{"regex format3", `{"items":{"format":"regex"}}`, `[` + rep(5000, func(i int) string { return fmt.Sprintf(`"(a?|b[^c-f]|[d-f]*){40}%d"`, i) }) + `]`},
		{"uri", `{"allOf":[` + rep(300, func(int) string { return `{"format":"uri"}` }) + `]}`, `"http://` + long + `"`},
		{"pointer", `{"allOf":[` + rep(300, func(int) string { return `{"format":"json-pointer"}` }) + `]}`, `"` + strings.Repeat("/~0", 80000) + `"`},
		{"ipv6 etc", `{"items":{"allOf":[{"format":"ipv6"},{"format":"ipv4"},{"format":"email"},{"format":"uuid"},{"format":"date-time"},{"format":"duration"},{"format":"iri"},{"format":"hostname"}]}}`, `[` + rep(19000, func(i int) string { return `"1:2:3:a@b"` }) + `]`},
		{"length", `{"allOf":[` + rep(300, func(int) string { return `{"minLength":1}` }) + `]}`, `"` + long + `"`},
		{"parse nums", `{}`, `[` + rep(120000, func(i int) string { return "1" }) + `]`},
		{"parse objects", `{}`, `[` + rep(6000, func(i int) string { return fmt.Sprintf(`{"a":1,"bbbbbbbb":"%d"}`, i) }) + `]`},
		{"parse names", `{}`, `{` + rep(19000, func(i int) string { return fmt.Sprintf(`"%d":1`, i) }) + `}`},
		{"parse deep", `{}`, strings.Repeat("[", 130000) + strings.Repeat("]", 120000)},
		{"parse deep objects", `{"items":{"properties":{"a":{"items":{}}}}}`, `[` + rep(300, func(i int) string { return nest(60, "{\"a\":", "1", "}") }) + `]`},
		{"not chain", `{"items":{` + nest(24, `"not":{`, `"type":"string"`, "}") + `}}`, `[` + rep(19000, func(i int) string { return "1" }) + `]`},
		{"if chain", `{"definitions":{` + rep(30, func(i int) string {
			return fmt.Sprintf(`"%d":{"if":{"$ref":"#/definitions/%d"},"then":{"$ref":"#/definitions/%d"},"else":{"$ref":"#/definitions/%d"}}`, i, i+1, i+1, i+1)
		}) + `,"30":{"type":"string"}},"allOf":[{"$ref":"#/definitions/0"}]}`, `1`},
		{"contains", `{"contains":{"contains":{"contains":{"const":1}}}}`, `[` + rep(200, func(i int) string { return `[` + rep(40, func(i int) string { return "[2]" }) + `]` }) + `]`},
		{"additional", `{"additionalProperties":{"type":"string"}}`, `{` + rep(9000, func(i int) string { return fmt.Sprintf(`"%d":1`, i) }) + `}`},
		{"deps", `{"items":{"dependencies":{` + rep(900, func(i int) string { return fmt.Sprintf(`"%d":["x"]`, i) }) + `}}}`, `[` + rep(9000, func(i int) string { return `{"5":1}` }) + `]`},
		{"const big", `{"items":{"const":[` + rep(4000, func(i int) string { return "1" }) + `]}}`, `[` + rep(4, func(i int) string { return "[" + rep(4000, func(i int) string { return "1" }) + "]" }) + `]`},
		{"sums", `{"items":{"uniqueItems":true,"enum":[[1]]}}`, `[` + rep(4, func(i int) string { return "[" + rep(4000, func(i int) string { return fmt.Sprint(i) }) + "]" }) + `]`},
		{"plain", `{"type":"array","items":{"type":"object","required":["file","line"],"additionalProperties":false,"properties":{"file":{"type":"string","minLength":1,"pattern":"^[a-z/.0-9]+$"},"line":{"type":"integer","minimum":1}}}}`, `[` + rep(6000, func(i int) string { return fmt.Sprintf(`{"file":"src/a/b/c%d.go","line":%d}`, i, i+1) }) + `]`},
		{"read allOf true", `{"allOf":[` + rep(998, func(int) string { return "true" }) + `]}`, `null`},
		{"read props", `{"properties":{` + rep(990, func(i int) string { return fmt.Sprintf(`"%d":{"type":"string"}`, i) }) + `}}`, `null`},
		{"read ids", `{"definitions":{` + rep(200, func(i int) string { return fmt.Sprintf(`"%d":{"$id":"http://a/%d"}`, i, i) }) + `,` + rep(390, func(i int) string { return fmt.Sprintf(`"x%d":{}`, i) }) + `}}`, `null`},
		{"read ids2", `{"definitions":{` + rep(200, func(i int) string { return fmt.Sprintf(`"%d":{"$id":"http://a/%d"}`, i, i) }) + `,` + rep(390, func(i int) string { return fmt.Sprintf(`"x%d":{"type":"string"}`, i) }) + `}}`, `null`},
		{"read defs refs", `{"properties":{` + rep(199, func(i int) string { return fmt.Sprintf(`"%d":{"$ref":"#/$defs/%d"}`, i, i) }) + `},"$defs":{` +
			rep(199, func(i int) string { return fmt.Sprintf(`"%d":{"title":"x"}`, i) }) + `},"definitions":{` + rep(190, func(i int) string { return fmt.Sprintf(`"x%d":{}`, i) }) + `}}`, `null`},
		{"read enum nums", `{"enum":[` + rep(4900, func(i int) string { return fmt.Sprint(i + 1000) }) + `]}`, `null`},
		{"read enum exp", `{"enum":[` + rep(3000, func(i int) string { return fmt.Sprintf("%de300", i) }) + `]}`, `null`},
		{"read enum neg", `{"enum":[` + rep(3000, func(i int) string { return fmt.Sprintf("%de-300", i) }) + `]}`, `null`},
		{"read required", `{"required":[` + rep(4000, func(i int) string { return fmt.Sprintf(`"%d"`, i) }) + `]}`, `null`},
		{"read patterns", `{"allOf":[` + rep(60, func(i int) string { return fmt.Sprintf(`{"pattern":"(?i)%s%d"}`, strings.Repeat(`\\pL`, 6), i) }) + `]}`, `null`},
		{"read patterns2", `{"allOf":[` + rep(300, func(i int) string { return fmt.Sprintf(`{"pattern":"(a|b|c|%d){200}%s"}`, i, "") }) + `]}`, `null`},
		{"read patterns3", `{"allOf":[` + rep(990, func(i int) string { return fmt.Sprintf(`{"pattern":"(?i)\\pL%d"}`, i) }) + `]}`, `null`},
		{"read patterns4", `{"allOf":[` + rep(5, func(i int) string { return fmt.Sprintf(`{"pattern":"((a|b.){80}x?){2}%d"}`, i) }) + `]}`, `null`},
		{"read patterns5", `{"allOf":[` + rep(10, func(i int) string { return fmt.Sprintf(`{"pattern":"[^a]{300}%d"}`, i) }) + `]}`, `null`},
		{"read patternProps", `{"patternProperties":{` + rep(990, func(i int) string { return fmt.Sprintf(`"[a-z]{900}%d":true`, i) }) + `}}`, `null`},
		{"read collide", `{"enum":[` + rep(250, func(i int) string {
			s := `["`
			for b := range 9 {
				s += "a"
				if i>>b&1 == 1 {
					s += `","`
				} else {
					s += `\u0004`
				}
			}
			return s + `"]`
		}) + `]}`, `null`},
		{"read deps", `{"dependencies":{` + rep(990, func(i int) string { return fmt.Sprintf(`"%d":{"type":"string"}`, i) }) + `}}`, `null`},
		{"read deep", strings.Repeat(`{"allOf":[{},{"items":{"anyOf":[true,`, 7) + "{}" + strings.Repeat("]}}]}", 7), `null`},
		{"read invalid", `{"anyOf":[` + rep(990, func(i int) string { return `{"items":{"type":5}}` }) + `]}`, `null`},
		{"read items meta", strings.Repeat(`{"items":`, 31) + `{"type":5}` + strings.Repeat("}", 31), `null`},
		{"read items meta ok", strings.Repeat(`{"items":`, 30) + `{"type":"string"}` + strings.Repeat("}", 30), `null`},
		{"read deps meta", strings.Repeat(`{"dependencies":{"a":`, 15) + `{"type":5}` + strings.Repeat("}}", 15), `null`},
		{"read items arr", strings.Repeat(`{"items":[`, 15) + `{"type":5}` + strings.Repeat("]}", 15), `null`},
		{"read long ref", `{"definitions":{` + rep(150, func(i int) string { return fmt.Sprintf(`"%d":{"$ref":"#/definitions/%d"}`, i, i+1) }) + `,"150":{}}}`, `null`},
		{"read nested ids", strings.Repeat(`{"$id":"a/","items":`, 15) + `{}` + strings.Repeat("}", 15), `null`},
		{"read type list", `{"allOf":[` + rep(990, func(i int) string { return `{"type":["string","object","array"]}` }) + `]}`, `null`},
		{"read rat", `{"allOf":[` + rep(990, func(i int) string { return fmt.Sprintf(`{"multipleOf":1e-%d}`, 300+i%99) }) + `]}`, `null`},
	}
}

// Every check ends at its limit of steps, or a little beyond it: the last charge may
// exceed the rest.
func TestHostile_Ends(t *testing.T) {
	t.Parallel()
	for _, h := range hostiles() {
		if len(h.schema) > MaxSchema && !strings.HasPrefix(h.name, "read ") {
			t.Errorf("%s: a schema of %d bytes", h.name, len(h.schema))
		}
		s, err := Compile([]byte(h.schema))
		if err != nil {
			if !strings.HasPrefix(h.name, "read ") {
				t.Errorf("%s: %v", h.name, err)
			}
			continue
		}
		for _, text := range s.Check([]byte(h.value)) {
			if len(text) > 3*maxFaultText {
				t.Errorf("%s: a fault of %d bytes", h.name, len(text))
			}
		}
	}
}

// BenchmarkHostile measures what one request can cost, reading the schema included. The
// worst figure is the one that counts.
func BenchmarkHostile(b *testing.B) {
	for _, h := range hostiles() {
		b.Run(strings.ReplaceAll(h.name, " ", "_"), func(b *testing.B) {
			var worst time.Duration
			for b.Loop() {
				at := time.Now()
				if s, err := Compile([]byte(h.schema)); err == nil {
					s.Check([]byte(h.value))
				}
				worst = max(worst, time.Since(at))
			}
			b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
		})
	}
}
