package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"switchyard/actors/tracker"
)

// bindFaults binds a body to an operation's input and gives its faults by path.
func bindFaults(t *testing.T, op *tracker.Op, body string) (any, map[string]string) {
	t.Helper()
	p, err := newPlan(op, []string{workspaceParam, "id"}[:1])
	if err != nil {
		t.Fatal(err)
	}
	in := op.New()
	var b binder
	now := func() time.Time { return time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC) }
	err = b.bind(p, in, &source{body: []byte(body), header: noHeaders{}, caller: &tracker.Caller{}, now: now})
	var told *tracker.Error
	if err != nil && !errors.As(err, &told) {
		t.Fatalf("%v", err)
	}
	faults := map[string]string{}
	if told != nil {
		for _, f := range told.Details.(tracker.BadRequestDetails).Issues {
			faults[f.Path] = f.Message
		}
	}
	return in, faults
}

type noHeaders struct{}

func (noHeaders) header(string) ([]byte, bool) { return nil, false }

func TestBind_FillsEveryKind(t *testing.T) {
	t.Parallel()
	in, faults := bindFaults(t, opMake, `{"title":"a\n\"é\ud83d\ude00","ref":null,"color":"red","labels":["x","y"],"count":12,"order":-1.5e2,"public":false,
		"url":"https://e.example/x","at":"2026-11-20T21:30:00+02:00","parts":[{"repo":"r","access":"write"},{"repo":"q"}],"main":{"repo":"m"},
		"any":[1, {"a":null}],"schema":{"type":"object"},"words":["a","b"],"settings":{"k":"v"},"unknown":{"deep":[1,2,{"x":[]}]}}`)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	got := in.(*makeThingIn)
	want := &makeThingIn{
		Dedupe: "warn", Title: "a\n\"é😀",
		thingFields: thingFields{Ref: tracker.Opt[string]{Set: true, Null: true}, Color: tracker.Some(color("red")), Labels: tracker.Some([]string{"x", "y"})},
		Count:       tracker.Some(int64(12)), Order: tracker.Some(-150.0), Public: false,
		URL: tracker.Some("https://e.example/x"), At: tracker.Some("2026-11-20T21:30:00+02:00"),
		Parts: []partIn{{"r", "write"}, {"q", "read"}}, Main: tracker.Some(partIn{"m", "read"}),
		Any: []byte(`[1, {"a":null}]`), Schema: []byte(`{"type":"object"}`), Words: []byte(`["a","b"]`), Settings: map[string]string{"k": "v"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestBind_AbsentBodyIsEmptyObject(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", " \r\n\t", "{}"} {
		in, faults := bindFaults(t, opMake, body)
		if len(faults) != 1 || faults["title"] != "Is required." {
			t.Errorf("%q: %v", body, faults)
		}
		if got := in.(*makeThingIn); !got.Public || got.Ref.Set {
			t.Errorf("%q: %+v", body, got)
		}
	}
}

// A time that has passed is a fault beside others only. Alone it is left to the operation,
// behind the answers that are kept for idempotency keys.
func TestBind_TimesAreJudgedBesideOtherFaults(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"name":"","expiresAt":"2026-11-20T00:00:00Z"}`:     "map[expiresAt:Must lie in the future. name:Must be at least 1 character long.]",
		`{"name":"","expiresAt":"2026-11-20T00:00:00.001Z"}`: "map[name:Must be at least 1 character long.]",
		`{"name":"x","expiresAt":"2020-01-01T00:00:00Z"}`:    "map[]",
	} {
		if _, faults := bindFaults(t, tracker.CreateToken, body); fmt.Sprint(faults) != want {
			t.Errorf("%s: %v, want %s", body, faults, want)
		}
	}
}

// keptIn has an object that is kept as it is written.
type keptIn struct {
	Main keptPart `json:"main"`
}

type keptPart struct {
	Whole json.RawMessage     `json:"*"`
	Repo  tracker.Opt[string] `json:"repo" rules:"min=1"`
}

var opKeep = tracker.NewCommand[keptIn, tracker.None]("Keep", "", tracker.Needs{}, nil)

func TestBind_KeepsAnObjectAsItIsWritten(t *testing.T) {
	t.Parallel()
	const object = `{"deep":{"x":[1.0e2]} , "repo": "r\n","":{}}`
	in, faults := bindFaults(t, opKeep, "{ \"main\" :\n"+object+" }")
	if got := in.(*keptIn).Main; len(faults) > 0 || string(got.Whole) != object || got.Repo.Value != "r\n" {
		t.Errorf("got %s, %+v, %v", got.Whole, got.Repo, faults)
	}
	for body, path := range map[string]string{
		`{"main":{"deep":{"x":1e999}}}`:        "main.deep",
		`{"main":{"":1e999}}`:                  "main.",
		`{"main":{"deep":{"x":1,"x":2}}}`:      "main.deep.x",
		`{"main":{"repo":"a","repo":"b"}}`:     "main.repo",
		`{"main":{"repo":""}}`:                 "main.repo",
		`{"main":{"deep":"a\u0000"}}`:          "main.deep",
		`{"main":[]}`:                          "main",
		`{"main":{"deep":"\ud800"}}`:           "",
		`{"main":{"deep":1}} {}`:               "",
		`{"main":{"deep":` + "\"\xff\"" + `}}`: "",
		`{"main":{"deep":{"a":"b\u0000"}}}`:    "main.deep.a",
		`{"main":{"repo":7,"deep":1e999}}`:     "main.repo",
		`{"main":null}`:                        "main",
		`{"main":{"repo":null}}`:               "main.repo",
	} {
		_, faults := bindFaults(t, opKeep, body)
		if _, named := faults[path]; !named {
			t.Errorf("%s: %v", body, faults)
		}
	}
}

// Each field of the input with each wrong type is named, and nothing else is.
func TestBind_WrongTypeOnEachField(t *testing.T) {
	t.Parallel()
	p, err := newPlan(opMake, []string{workspaceParam})
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{"null": "null", "true": "a boolean", "17.5": "a number", `"x"`: "a string", "[]": "an array", "{}": "an object"}
	for _, f := range p.body.fields {
		for value, noun := range values {
			if f.name == "title" || !refuses(f, value) {
				continue
			}
			_, faults := bindFaults(t, opMake, fmt.Sprintf(`{"title":"t",%q:%s}`, f.name, value))
			// An object may lack what it needs instead.
			if message := faults[f.name]; len(faults) != 1 || message == "" || noun != "" && value != "null" && f.kind != kindRaw && f.enum == nil && !strings.HasPrefix(message, "Must") {
				t.Errorf("%s: %s gives %v", f.name, value, faults)
			}
		}
	}
}

func refuses(f *field, value string) bool {
	switch value[0] {
	case 'n':
		return !f.nullable && (f.kind != kindRaw || f.onlyObject || f.onlyStrings)
	case 't':
		return f.kind != kindBool && (f.kind != kindRaw || f.onlyObject || f.onlyStrings)
	case '1':
		return f.kind != kindFloat && (f.kind != kindRaw || f.onlyObject || f.onlyStrings)
	case '"':
		return (f.kind != kindText || f.enum != nil || f.uri || f.datetime) && (f.kind != kindRaw || f.onlyObject)
	case '[':
		return f.kind != kindList && (f.kind != kindRaw || f.onlyObject)
	}
	return f.kind != kindObject && f.kind != kindDict && (f.kind != kindRaw || f.onlyStrings)
}

func TestBind_NamesEveryFault(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 21)
	for name, row := range map[string]struct {
		body string
		want map[string]string
	}{
		"many at once": {`{"title":5,"labels":["",7,"toolonglabel"],"color":"blue","count":-1,"url":"x","at":"yesterday","parts":[{},{"repo":1}],"main":{"repo":null},"schema":[],"words":[1],"settings":{"a":1,"b":"123456"}}`, map[string]string{
			"title": "Must be a string, not a number.", "labels[0]": "Must be at least 1 character long.", "labels[1]": "Must be a string, not a number.",
			"labels[2]": "Must be at most 5 characters long.", "color": "Must be one of red, green.", "count": "Must be at least 0.", "url": "Must be an absolute URI.",
			"at": "Must be a date and time as in RFC 3339, such as 2026-11-20T21:30:00Z.", "parts[0].repo": "Is required.", "parts[1].repo": "Must be a string, not a number.",
			"main.repo": "Must not be null.", "schema": "Must be an object, not an array.", "words": "Must be a string or an array of strings.",
			"settings.a": "Must be a string, not a number.", "settings.b": "Must be at most 5 characters long.",
		}},
		"too long in characters":  {`{"title":"` + long + `"}`, map[string]string{"title": "Must be at most 20 characters long."}},
		"just fits in characters": {`{"title":"` + long[2:] + `"}`, map[string]string{}},
		"too many items":          {`{"title":"t","labels":["a","b","c","d",5]}`, map[string]string{"labels": "Must have at most 3 items."}},
		"too many entries":        {`{"title":"t","settings":{"a":"","b":"","c":""}}`, map[string]string{"settings": "Must have at most 2 items."}},
		"fraction":                {`{"title":"t","count":1.5}`, map[string]string{"count": "Must be an integer."}},
		"integer as 2.0":          {`{"title":"t","count":2.0}`, map[string]string{}},
		"integer too large":       {`{"title":"t","count":9007199254740993}`, map[string]string{"count": outOfRange}},
		"integer far too large":   {`{"title":"t","count":1` + strings.Repeat("0", 400) + `}`, map[string]string{"count": outOfRange}},
		"number out of range":     {`{"title":"t","order":1e400}`, map[string]string{"order": "Is out of the range of a double-precision number."}},
		"raw number out of range": {`{"title":"t","any":{"x":[-1e400]}}`, map[string]string{"any": "Has a number out of the range of a double-precision number."}},
		"ignored number":          {`{"title":"t","extra":{"x":[1e400]},"e":1e300}`, map[string]string{"extra": "Has a number out of the range of a double-precision number."}},
		"given twice":             {`{"title":"t","count":"x","title":"u","extra":{"a":1,"a":2}}`, map[string]string{"title": again, "extra.a": again, "count": "Must be an integer, not a string."}},
		"twice by escape":         {`{"title":"t","t\u0069tle":"u"}`, map[string]string{"title": again}},
		"NUL":                     {`{"title":"a\u0000","extra":["\u0000"],"any":{"\u0000":1},"color":"blue"}`, map[string]string{"title": "Must not contain NUL.", "extra[0]": "Must not contain NUL.", "any.\x00": "Must not contain NUL.", "color": "Must be one of red, green."}},
		"no NUL":                  {`{"title":"\\u0000"}`, map[string]string{}},
		"array":                   {`[]`, map[string]string{"": "The body must be a JSON object, not an array."}},
		"string":                  {`"x"`, map[string]string{"": "The body must be a JSON object, not a string."}},
		"null":                    {`null`, map[string]string{"": "The body must be a JSON object, not null."}},
		"validated":               {`{"title":"no title"}`, map[string]string{"title": "Must not be what it says."}},
		"cut off":                 {`{"title":"t"`, map[string]string{"": "The body is not valid JSON: it ends too early at byte 12."}},
		"trailing":                {`{"title":"t"}{}`, map[string]string{"": "The body has something after its JSON object."}},
		"trailing garbage":        {`{"title":"t"}]`, map[string]string{"": "The body has something after its JSON object."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, faults := bindFaults(t, opMake, row.body)
			if !reflect.DeepEqual(faults, row.want) {
				t.Errorf("got  %v\nwant %v", faults, row.want)
			}
		})
	}
}

func TestBind_BrokenJSONIsOneFaultWithItsPlace(t *testing.T) {
	t.Parallel()
	valid := `{"title":"t","count":12,"labels":["a","b"],"main":{"repo":"x"}}`
	for cut := 1; cut < len(valid); cut++ {
		_, faults := bindFaults(t, opMake, valid[:cut])
		if len(faults) != 1 || !strings.Contains(faults[""], "at byte ") {
			t.Errorf("cut at %d: %v", cut, faults)
		}
	}
	for _, body := range []string{
		`{"title":'t'}`, `{title:"t"}`, `{"title":"t",}`, `{"title" "t"}`, `{"count":01}`, `{"count":+1}`, `{"count":1.}`, `{"count":NaN}`, `{"public":True}`,
		"{\"title\":\"a\x00b\"}", "{\"title\":\"a\nb\"}", `{"title":"\x41"}`, `{"title":"\ud800"}`, `{"title":"\udc00\ud800"}`, "{\"title\":\"\xff\"}",
		"{\"title\":\"\xed\xa0\x80\"}", "{\"t\xc0\xaf\":1}", "\xef\xbb\xbf{}", `{"any":[1,2}`, `{"any":{"a"}}`, `{"unknown":[}`, `/**/{}`, `{"labels":["a",]}`, `{"settings":{"a":"b",}}`, "\x00", "}",
	} {
		_, faults := bindFaults(t, opMake, body)
		if len(faults) != 1 || faults[""] == "" {
			t.Errorf("%q: %v", body, faults)
		}
	}
}

func TestBind_DeepNestingIsCheap(t *testing.T) {
	t.Parallel()
	const n = 100_000
	for name, body := range map[string]string{
		"arrays":       strings.Repeat("[", n),
		"in a field":   `{"title":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`,
		"in raw":       `{"any":` + strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) + `}`,
		"in unknown":   `{"x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`,
		"65 in a list": `{"any":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`,
	} {
		start := time.Now()
		_, faults := bindFaults(t, opMake, body)
		if len(faults) != 1 || !strings.Contains(faults[""], "more than 64 levels") {
			t.Errorf("%s: %v", name, faults)
		}
		if took := time.Since(start); took > 30*time.Second { // a quadratic look would take minutes
			t.Errorf("%s took %v", name, took)
		}
	}
	if _, faults := bindFaults(t, opMake, `{"title":"t","any":`+strings.Repeat("[", 63)+strings.Repeat("]", 63)+`}`); len(faults) > 0 {
		t.Errorf("64 levels: %v", faults)
	}
	if _, faults := bindFaults(t, opMake, `{"title":"t","any":"`+strings.Repeat("[", 200)+`"}`); len(faults) > 0 {
		t.Errorf("brackets in a string: %v", faults)
	}
}

// An answer lists a bounded number of faults, whatever the body.
func TestBind_FaultsAreBounded(t *testing.T) {
	t.Parallel()
	p, err := newPlan(opStrict, []string{workspaceParam, "id"})
	if err != nil {
		t.Fatal(err)
	}
	var body strings.Builder
	body.WriteString(`{"items":[{"repo":"r"}]`)
	for i := range 50_000 {
		fmt.Fprintf(&body, `,"%s%d":1`, strings.Repeat("long", 5), i)
	}
	body.WriteString("}")
	var b binder
	src := source{names: []string{"id"}, params: []string{"x"}, body: []byte(body.String()), header: noHeaders{}}
	var told *tracker.Error
	if err := b.bind(p, new(strictIn), &src); !errors.As(err, &told) {
		t.Fatal(err)
	}
	issues := told.Details.(tracker.BadRequestDetails).Issues
	if len(issues) != tracker.MaxFaults+1 || !strings.Contains(issues[tracker.MaxFaults].Message, "more faults") {
		t.Errorf("%d faults, the last %v", len(issues), issues[len(issues)-1])
	}
}

func TestBind_StrictNamesUnknownProperties(t *testing.T) {
	t.Parallel()
	p, err := newPlan(opStrict, []string{workspaceParam, "id"})
	if err != nil {
		t.Fatal(err)
	}
	var b binder
	src := source{names: []string{"id"}, params: []string{"x"}, body: []byte(`{"items":[{"repo":"r","x":{"y":1}}],"` + strings.Repeat("z", 100) + `":[]}`), header: noHeaders{}}
	var told *tracker.Error
	if err := b.bind(p, new(strictIn), &src); !errors.As(err, &told) {
		t.Fatal(err)
	}
	got := told.Details.(tracker.BadRequestDetails).Issues
	want := []tracker.Fault{{Path: "items[0].x", Message: "Is not a known property."}, {Path: strings.Repeat("z", 64) + "…", Message: "Is not a known property."}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}

// A report may name every status of a session. Moves that are not allowed are for the operation
// to refuse, with the session's status.
func TestBind_ReportTakesEveryStatus(t *testing.T) {
	t.Parallel()
	p, err := newPlan(tracker.ReportSession, []string{workspaceParam, "id"})
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range tracker.SessionStatus("").EnumValues() {
		var b binder
		body := []byte(`{"status":"` + status + `"}`)
		if err := b.bind(p, tracker.ReportSession.New(), &source{names: []string{workspaceParam, "id"}, params: []string{"w", "s"}, body: body, header: noHeaders{}}); err != nil {
			t.Errorf("%s: %v", status, err)
		}
	}
}

func TestBind_Query(t *testing.T) {
	t.Parallel()
	p, err := newPlan(opList, []string{workspaceParam})
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]any{
		"":                                    listThingsIn{Limit: 50},
		"limit=7&color=red&big=true":          listThingsIn{Limit: 7, Color: tracker.Some(color("red")), Big: tracker.Some(true)},
		"search=a+b%20%C3%A9%26&x=1&x=2":      listThingsIn{Limit: 50, Search: tracker.Some("a b é&")},
		"search=&&=&":                         listThingsIn{Limit: 50, Search: tracker.Some("")},
		"s%65arch=x":                          listThingsIn{Limit: 50, Search: tracker.Some("x")},
		"limit=0":                             "query.limit",
		"limit=101":                           "query.limit",
		"limit=":                              "query.limit",
		"limit=1.5":                           "query.limit",
		"limit=%2B5":                          "query.limit",
		"limit=05":                            "query.limit",
		"limit=0x10":                          "query.limit",
		"limit=99999999999999999999":          "query.limit",
		"limit=5&limit=5":                     "query.limit",
		"limit=5&l%69mit=6":                   "query.limit",
		"color=blue":                          "query.color",
		"color=":                              "query.color",
		"big=1":                               "query.big",
		"big=TRUE":                            "query.big",
		"search=%":                            "query.search",
		"search=%zz":                          "query.search",
		"search=%ff":                          "query.search",
		"search=%00":                          "query.search",
		"search=" + strings.Repeat("a", 5000): "query.search",
	} {
		in := new(listThingsIn)
		var b binder
		err := b.bind(p, in, &source{query: []byte(query), header: noHeaders{}})
		if path, bad := want.(string); bad {
			var told *tracker.Error
			if !errors.As(err, &told) || told.Details.(tracker.BadRequestDetails).Issues[0].Path != path {
				t.Errorf("%.40q: %v", query, err)
			}
		} else if err != nil || !reflect.DeepEqual(*in, want) {
			t.Errorf("%q: %+v, %v", query, *in, err)
		}
	}
}

func TestPlan_RefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	plans := map[string]*tracker.Op{
		"unknown rule": tracker.NewCommand[struct {
			A string `json:"a" rules:"shiny"`
		}, tracker.None]("x", "", tracker.Needs{}, nil),
		"bad type": tracker.NewCommand[struct {
			A chan int `json:"a"`
		}, tracker.None]("x", "", tracker.Needs{}, nil),
		"list in the query": tracker.NewQuery[struct {
			A []string `query:"a"`
		}, tracker.None]("x", "", tracker.Needs{}, nil),
		"foreign parameter": tracker.NewQuery[struct {
			A string `path:"a"`
		}, tracker.None]("x", "", tracker.Needs{}, nil),
		"two of a name": tracker.NewCommand[struct {
			thingFields
			Again string `json:"ref"`
		}, tracker.None]("x", "", tracker.Needs{}, nil),
		"raw and not": tracker.NewCommand[struct {
			A []byte `raw:"json"`
			B string `json:"b"`
		}, tracker.None]("x", "", tracker.Needs{}, nil),
		"raw twice": tracker.NewCommand[struct {
			A []byte `raw:"json"`
			B []byte `raw:"json"`
		}, tracker.None]("x", "", tracker.Needs{}, nil),
		"raw text": tracker.NewCommand[struct {
			A string `raw:"json"`
		}, tracker.None]("x", "", tracker.Needs{}, nil),
		"raw of no type": tracker.NewCommand[struct {
			A []byte `raw:"yaml"`
		}, tracker.None]("x", "", tracker.Needs{}, nil),
		"raw within": tracker.NewCommand[struct {
			A struct {
				B []byte `raw:"json"`
			} `json:"a"`
		}, tracker.None]("x", "", tracker.Needs{}, nil),
	}
	for name, op := range plans {
		if _, err := newPlan(op, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := newPlan(opList, []string{workspaceParam, "id"}); err == nil {
		t.Error("a parameter that no field takes: no error")
	}
}
