package httpapi

import (
	"encoding/json"
	"time"

	"switchyard/actors/tracker"
)

// The operations of the tests. They never run: the fake engine answers for them.

type thingIn struct {
	ID          string `path:"id"`
	IfNoneMatch string `header:"If-None-Match"`
}

type color string

func (color) EnumValues() []string { return []string{"red", "green"} }

type partIn struct {
	Repo   string `json:"repo" rules:"required,max=10"`
	Access string `json:"access" enum:"read,write" default:"read"`
}

type thingFields struct {
	Ref    tracker.Opt[string]   `json:"ref" rules:"nullable,min=1,max=255"`
	Color  tracker.Opt[color]    `json:"color"`
	Labels tracker.Opt[[]string] `json:"labels" rules:"nullable,max=3" items:"min=1,max=5"`
}

type makeThingIn struct {
	Dedupe string `query:"dedupe" enum:"warn,block" default:"warn"`
	Title  string `json:"title" rules:"required,min=1,max=20"`
	thingFields
	Count    tracker.Opt[int64]   `json:"count" rules:"nullable,min=0"`
	Order    tracker.Opt[float64] `json:"order" rules:"nullable"`
	Public   bool                 `json:"public" default:"true"`
	URL      tracker.Opt[string]  `json:"url" rules:"nullable,uri,max=2048"`
	At       tracker.Opt[string]  `json:"at" rules:"nullable,datetime"`
	Parts    []partIn             `json:"parts" rules:"max=2"`
	Main     tracker.Opt[partIn]  `json:"main"`
	Any      json.RawMessage      `json:"any"`
	Schema   json.RawMessage      `json:"schema" rules:"object"`
	Words    json.RawMessage      `json:"words" rules:"strings"`
	Settings map[string]string    `json:"settings" rules:"max=2" items:"max=5"`
}

func (in *makeThingIn) Validate(faults *tracker.Faults) {
	if in.Title == "no title" {
		faults.Add("title", "Must not be what it says.")
	}
}

type listThingsIn struct {
	Limit  int                 `query:"limit" rules:"min=1,max=100" default:"50"`
	Color  tracker.Opt[color]  `query:"color"`
	Big    tracker.Opt[bool]   `query:"big"`
	Search tracker.Opt[string] `query:"search"`
}

type changeThingIn struct {
	ID      string `path:"id"`
	IfMatch string `header:"If-Match"`
	thingFields
}

type strictIn struct {
	ID    string   `path:"id"`
	Items []partIn `json:"items" rules:"required,min=1,max=3"`
}

type signedIn struct {
	Signature string `header:"X-Signature"`
	Body      []byte `raw:"json,form"`
}

// typedIn is signedIn for an operation that is told of bodies of other types.
type typedIn struct {
	signedIn
	Refused *tracker.Error `raw:"refused"`
}

// formedSignature takes every signature but one.
func formedSignature(header func(string) string) bool { return header("X-Signature") != "malformed" }

type thing struct {
	ID    string             `json:"id"`
	Color color              `json:"color"`
	Note  *string            `json:"note"`
	At    *tracker.Timestamp `json:"at"`
	Next  []thing            `json:"next,omitempty"`
}

type watchIn struct {
	Wait int `query:"wait" rules:"min=0,max=30"`
}

func (in *watchIn) WaitFor() time.Duration { return time.Duration(in.Wait) * time.Second }

type takeIn struct {
	Wait int `json:"wait" rules:"min=0,max=30"`
}

func (in *takeIn) WaitFor() time.Duration { return time.Duration(in.Wait) * time.Second }

func noQuery[In any](*tracker.View, *In) (tracker.Reply, error) { panic("not run") }
func noCommand[In any](*tracker.Tx, *In) (tracker.Reply, error) { panic("not run") }

var (
	opGet    = tracker.NewQuery[thingIn, thing]("GetThing", "Get a thing", tracker.Needs{Level: tracker.Read}, noQuery[thingIn], tracker.Answers(tracker.Done, tracker.NotModified))
	opList   = tracker.NewQuery[listThingsIn, []thing]("ListThings", "List things", tracker.Needs{Level: tracker.Read}, noQuery[listThingsIn], tracker.FromSnapshot)
	opMake   = tracker.NewCommand[makeThingIn, thing]("MakeThing", "Make a thing", tracker.Needs{Level: tracker.Write}, noCommand[makeThingIn], tracker.Answers(tracker.Created))
	opChange = tracker.NewCommand[changeThingIn, thing]("ChangeThing", "Change a thing", tracker.Needs{Level: tracker.Write}, noCommand[changeThingIn])
	opDelete = tracker.NewCommand[thingIn, tracker.None]("DeleteThing", "Delete a thing", tracker.Needs{Level: tracker.Write}, noCommand[thingIn])
	opStrict = tracker.NewCommand[strictIn, thing]("StrictThing", "Be strict", tracker.Needs{Level: tracker.Write}, noCommand[strictIn], tracker.StrictBody)
	opOpen   = tracker.NewCommand[makeThingIn, thing]("OpenThing", "Make a thing as a stranger", tracker.Needs{}, noCommand[makeThingIn], tracker.WithSecret, tracker.Answers(tracker.Created))
	opFound  = tracker.NewCommand[makeThingIn, thing]("FoundThing", "Make a place for things", tracker.Needs{}, noCommand[makeThingIn], tracker.ForOnboarding, tracker.Answers(tracker.Created))
	opSigned = tracker.NewCommand[signedIn, thing]("SignedThing", "Take a signed thing", tracker.Needs{}, noCommand[signedIn], tracker.WithoutKey, tracker.SignedBy(formedSignature), tracker.Answers(tracker.Accepted))
	opTyped  = tracker.NewCommand[typedIn, thing]("TypedThing", "Take a signed thing of some type", tracker.Needs{}, noCommand[typedIn], tracker.WithoutKey, tracker.Answers(tracker.Accepted))
	opBulky  = tracker.NewCommand[makeThingIn, thing]("BulkyThing", "Make a thing of many writes", tracker.Needs{Level: tracker.Write}, noCommand[makeThingIn], tracker.BodyUpTo(2<<20), tracker.WritesUpTo(20<<20), tracker.Answers(tracker.Created))
	opLarge  = tracker.NewCommand[makeThingIn, thing]("LargeThing", "Make a large thing", tracker.Needs{Level: tracker.Write}, noCommand[makeThingIn], func(o *tracker.Op) { o.MaxBody = 2 << 20 }, tracker.Answers(tracker.Created))
	opWatch  = tracker.NewQuery[watchIn, thing]("WatchThings", "Watch things", tracker.Needs{Level: tracker.Read}, noQuery[watchIn], tracker.FromSnapshot, tracker.MayWait, tracker.SinceFirstLook)
	opTake   = tracker.NewCommand[takeIn, thing]("TakeThing", "Take a thing", tracker.Needs{Level: tracker.Write}, noCommand[takeIn], tracker.MayWait)
	opStream = tracker.NewQuery[listThingsIn, []thing]("StreamThings", "Stream things", tracker.Needs{Level: tracker.Read}, noQuery[listThingsIn], tracker.MayStream)
	opLines  = tracker.NewQuery[tracker.ExportIn, tracker.None]("SendLines", "Send lines", tracker.Needs{Level: tracker.Read}, noQuery[tracker.ExportIn], tracker.AnswersFile(tracker.ExportMedia), tracker.AnswersLines)
	opSlug   = tracker.NewQuery[struct {
		Slug string `path:"slug"`
	}, thing]("ThingBySlug", "Get a thing by its slug", tracker.Needs{Level: tracker.Identified}, nil)
)

func fakeRoutes() []Route {
	return []Route{
		{"GET", "/w/{organizationId}/things/{id}", opGet},
		{"GET", "/w/{organizationId}/things", opList},
		{"POST", "/w/{organizationId}/things", opMake},
		{"PATCH", "/w/{organizationId}/things/{id}", opChange},
		{"DELETE", "/w/{organizationId}/things/{id}", opDelete},
		{"POST", "/w/{organizationId}/things/{id}/strict", opStrict},
		{"POST", "/open", opOpen},
		{"POST", "/found", opFound},
		{"POST", "/signed", opSigned},
		{"POST", "/typed", opTyped},
		{"POST", "/w/{organizationId}/large", opLarge},
		{"POST", "/w/{organizationId}/bulky", opBulky},
		{"POST", "/w/{organizationId}/watch", opWatch},
		{"POST", "/w/{organizationId}/take", opTake},
		{"GET", "/w/{organizationId}/stream", opStream},
		{"GET", "/w/{organizationId}/lines", opLines},
		{"GET", "/w/slug/{slug}", opSlug},
		{"POST", "/w/{organizationId}/sessions/{id}/mcp", opSessionTools},
		{"POST", "/console/session", opOpenConsole},
		{"GET", "/console/session", opConsole},
		{"DELETE", "/console/session", opEndConsole},
	}
}
