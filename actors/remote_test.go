package actors

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// fillAll sets every exported field of a value to a non-zero value, and fails for
// fields that JSON would lose.
func fillAll(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	switch v.Kind() {
	case reflect.Struct:
		if v.Type().PkgPath() == "time" {
			return
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() && !f.Anonymous {
				t.Errorf("%s.%s would be lost on the way to another node", path, f.Name)
				continue
			}
			if strings.HasPrefix(f.Tag.Get("json"), "-") {
				t.Errorf("%s.%s is left out of JSON", path, f.Name)
			}
			fillAll(t, v.Field(i), path+"."+f.Name)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillAll(t, key, path+" key")
		fillAll(t, value, path+"[]")
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"some":"JSON"}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fillAll(t, v.Index(i), path+"[]")
		}
	case reflect.Array:
		for i := range v.Len() {
			fillAll(t, v.Index(i), path+"[]")
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillAll(t, v.Elem(), path)
	case reflect.String:
		v.SetString("some text <&>")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(5)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	default:
		t.Errorf("%s: a %s", path, v.Kind())
	}
}

// Inputs of steps arrive at other nodes with every field.
func TestStepOps_InputsSurviveTheWay(t *testing.T) {
	t.Parallel()
	for name, op := range tracker.StepOps {
		if op.Name != name || op.Kind == tracker.Workflow {
			t.Errorf("%s: is %s, of kind %v", name, op.Name, op.Kind)
		}
		in := op.New()
		fillAll(t, reflect.ValueOf(in).Elem(), name)
		sent, err := json.Marshal(in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := op.New()
		if err := json.Unmarshal(sent, got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(in, got) {
			t.Errorf("%s: %+v came as %+v", name, in, got)
		}
	}
}

func TestStepCaller_SurvivesTheWay(t *testing.T) {
	t.Parallel()
	rate := int64(9)
	caller := tracker.Caller{
		Principal: tracker.Principal{Type: tracker.ActorUser, ID: "u", Token: "t", Home: storage.ID{1, 2}, Permissions: 5, Confined: true,
			Expires: time.UnixMilli(1_795_000_000_123).UTC(), SCIM: tracker.SCIMUsersRead},
		Role: tracker.RoleGuest, Level: tracker.Write, Hidden: map[storage.ID]struct{}{{3}: {}, {4}: {}},
		Teams:  map[storage.ID]struct{}{{5}: {}, {6}: {}},
		Joined: "2026-11-20T21:30:00.123Z", Importing: true, RequestsPerSecond: &rate,
		Maker: &tracker.Caller{Principal: tracker.Principal{Type: tracker.ActorAgent, ID: "a", Sponsor: "u", Via: []tracker.UserID{"v", "w"}}, Teams: map[storage.ID]struct{}{{7}: {}}},
	}
	if want, got := reflect.TypeFor[tracker.Caller]().NumField(), reflect.TypeFor[stepCaller]().NumField(); want != got {
		t.Errorf("a caller has %d fields, %d are sent", want, got)
	}
	sent, err := json.Marshal(sendCaller(&caller))
	if err != nil {
		t.Fatal(err)
	}
	var got stepCaller
	if err := json.Unmarshal(sent, &got); err != nil {
		t.Fatal(err)
	}
	if back := got.caller(); !reflect.DeepEqual(back, caller) {
		t.Errorf("%+v came as %+v", caller, back)
	}
}

func TestServeCall_RefusesWhatIsNoStep(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, body := range []string{"", "{", "[]", `{"op":"CreateIssue"}`, `{"op":"Nothing"}`, `{"op":"ReserveSlug","in":[]}`, `{"op":"ReserveSlug"}`, `{"op":"ReserveSlug","timeLeft":-5,"in":{},"workspace":[1]}`} {
		answer, err := b.engine.ServeCall(t.Context(), []byte(body))
		if err == nil && !bytes.Contains(answer, []byte(`"error"`)) {
			t.Errorf("%s: %s", body, answer)
		}
	}
}

// An error of an operation on another node arrives with every field, including those
// that clients don't see.
func TestStepError_SurvivesTheWay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, told := range []*tracker.Error{
		tracker.Moved("elsewhere"), tracker.OutcomeUnknown("lost"), tracker.NotFound("workspace"), tracker.Conflict("taken", "choose"),
		{Code: tracker.CodeUnauthorized, Message: "m", Hint: "h", Reason: "invalid_client"},
		{Code: tracker.CodeForbidden, Message: "m", Hint: "h", Unadmitted: true},
		{Code: tracker.CodeUnavailable, Message: "m", Hint: "h", Details: tracker.OutcomeDetails{Outcome: "not_applied"}, RetryAfter: time.Second, ReadOnly: "service"},
	} {
		sent, err := json.Marshal(stepAnswer{Error: b.engine.stepError(&stepCall{}, told)})
		if err != nil {
			t.Fatal(err)
		}
		var got stepAnswer
		if err := json.Unmarshal(sent, &got); err != nil {
			t.Fatal(err)
		}
		if back := got.Error.clientError(); !reflect.DeepEqual(back, told) {
			t.Errorf("%+v came as %+v", told, back)
		}
	}
}

// itself is a Remote that calls its own engine.
type itself struct{ engine *Engine }

func (i *itself) Call(ctx context.Context, _ storage.Shard, body []byte) ([]byte, error) {
	return i.engine.ServeCall(ctx, body)
}

func (i *itself) OwnerDue(_ storage.Shard, missing time.Time) time.Time {
	return missing.Add(3 * time.Second)
}

// A repeat gets the secret of the first answer, whichever of the two came from another
// node; another credential does not.
func TestStep_OpensTheAnswerOfAStepForAnotherNode(t *testing.T) {
	t.Parallel()
	for _, firstAway := range []bool{true, false} {
		remote := &itself{}
		b := setup(t, func(c *Config) { c.Remote = remote })
		remote.engine = b.engine
		op := tracker.StepOps["OnboardWorkspaceHere"]
		in := op.New()
		input := fmt.Sprintf(`{"name":"A","slug":"a","key":"A","owner":%q,"reserved":%q}`, workspaceNumber(9), time.Now().UTC().Format("2006-01-02T15:04:05.000Z"))
		if err := json.Unmarshal([]byte(input), in); err != nil {
			t.Fatal(err)
		}
		ask := func(credential string, away bool) (tracker.Reply, error) {
			req := request(workspaceNumber(1))
			req.Credential, req.Idempotency = credential, &tracker.Idempotency{Key: "k"}
			req.Caller = tracker.Caller{Role: tracker.RoleOwner, Level: tracker.Admin}
			req.Caller.Token = "t" // anonymous callers need none
			if away {
				return b.engine.callRemote(req, op, in, b.engine.shardOf(req.Workspace).number)
			}
			return b.engine.do(req, op, in)
		}
		first, err := ask("secret", firstAway)
		if err != nil {
			t.Fatal(err)
		}
		for _, away := range []bool{true, false} {
			again, err := ask("secret", away)
			if err != nil || !again.Replayed || !bytes.Equal(again.Body, first.Body) {
				t.Errorf("first away %v, then %v: %+v, %v", firstAway, away, again, err)
			}
			if _, err := ask("", away); err == nil {
				t.Errorf("first away %v, then %v: the answer opens without the credential", firstAway, away)
			}
		}
	}
}
