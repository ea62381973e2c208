package tracker

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// againLine is a line with holes for TestImport_TakesTheExportOfWhatItTook: {name} is the id that has the
// name, and {at} a time. An export has the line by the id or the time after.
type againLine struct{ kind, after, data string }

// againLines has lines of every kind, several of those that belong to others.
var againLines = []againLine{
	{"settings", "", `{"ssoEnforced":true}`},
	{"retired_team_key", "", `{"key":"OLD","lastNumber":7}`},
	{"team_number", "team1", `{"teamId":"{team1}","lastNumber":9}`},
	{"team", "team1", `{"id":"{team1}","key":"ENG","name":"E","ownerId":"ann","isDefault":true,"isPublic":true,{made}}`},
	{"team", "team2", `{"id":"{team2}","key":"OPS","name":"O","ownerId":"ann","isPublic":false,{made}}`},
	{"member", "at", `{"userId":"bob","role":"member",{made}}`},
	{"team_member", "at", `{"teamId":"{team1}","userId":"bob","createdAt":"{at}"}`},
	{"team_member", "at", `{"teamId":"{team2}","userId":"bob","createdAt":"{at}"}`},
	{"scim_user", "at", `{"id":"bob","userName":"bob","emails":[{"value":"bob@example.com"}],{made}}`},
	{"scim_group", "at", `{"id":"{team1}","displayName":"E",{made}}`},
	{"scim_group", "at", `{"id":"{team2}","displayName":"O",{made}}`},
	{"scim_connection", "connection", `{"connectionId":"{connection}","status":"active","scopes":["scim.users.read"],"createdAt":"{at}","expiresAt":"2027-01-01T00:00:00.000Z"}`},
	{"token", "token", `{"id":"{token}","name":"T","permissions":"read","actorId":"bob","actorType":"user","createdAt":"{at}"}`},
	{"oauth_client", "client", `{"id":"{client}","name":"C","permissions":"read","createdAt":"{at}"}`},
	{"label", "label", `{"id":"{label}","name":"L",{made}}`},
	{"project", "project", `{"id":"{project}","name":"P",{made}}`},
	{"cycle", "cycle", `{"id":"{cycle}","name":"C",{made}}`},
	{"template", "template", `{"id":"{template}","name":"T",{made}}`},
	{"agent", "at", `{"id":"a","name":"A","maxConcurrentSessions":2,"concurrencyBy":["repo"],{made}}`},
	{"hold", "at", `{"scope":"agent:b","reason":"R","createdById":"ann","createdAt":"{at}"}`},
	{"concurrency_limit", "", `{"key":"deploy","limit":2}`},
	{"budget", "", `{"scope":"workspace","costMicros":5,"period":"total"}`},
	{"issue", "issue1", `{"id":"{issue1}","teamId":"{team1}","title":"One","status":"todo","priority":"low","number":1,"identifier":"ENG-1","cycleId":"{cycle}","estimate":3,{made}}`},
	{"issue", "issue2", `{"id":"{issue2}","teamId":"{team2}","title":"Two","status":"done","priority":"high","number":2,"identifier":"OPS-2","parentId":"{issue1}",{made}}`},
	{"issue", "issue3", `{"id":"{issue3}","teamId":"{team1}","title":"Three","status":"todo","priority":"low","number":3,"identifier":"ENG-3","repo":"o/r",{made}}`},
	{"closing", "issue2", `{"issueId":"{issue2}","closedAt":"{at}"}`},
	{"former_identifier", "issue2", `{"issueId":"{issue2}","identifier":"ENG-2"}`},
	{"burndown", "issue1", `{"issueId":"{issue1}","cycleId":"{cycle}","estimate":3,"days":[{"date":"2026-01-01","state":"open"}]}`},
	{"history", "history1", `{"id":"{history1}","issueId":"{issue1}","field":"title","from":"O","to":"One","actorId":"ann","actorType":"user","createdAt":"{at}"}`},
	{"history", "history2", `{"id":"{history2}","issueId":"{issue2}","field":"title","from":"T","to":"Two","actorId":"ann","actorType":"user","createdAt":"{at}"}`},
	{"relation", "at", `{"id":"{relation1}","type":"blocks","fromId":"{issue1}","toId":"{issue3}","createdAt":"{at}","createdById":"ann"}`},
	{"relation", "at", `{"id":"{relation2}","type":"relates","fromId":"{issue2}","toId":"{issue3}","createdAt":"{at}","createdById":"ann"}`},
	{"comment", "comment1", `{"id":"{comment1}","issueId":"{issue1}","authorId":"ann","authorType":"user","body":"B",{made}}`},
	{"comment", "comment2", `{"id":"{comment2}","issueId":"{issue1}","parentId":"{comment1}","authorId":"ann","authorType":"user","body":"B",{made}}`},
	{"attachment", "attachment", `{"id":"{attachment}","issueId":"{issue2}","name":"a.png","contentType":"image/png","size":9,"sha256":"{sum}","contentBase64":"iVBORw0KGgox","createdAt":"{at}"}`},
	{"access_grant", "grant1", `{"id":"{grant1}","issueId":"{issue3}","actorId":"bob","actorType":"user","createdAt":"{at}"}`},
	{"access_grant", "grant2", `{"id":"{grant2}","issueId":"{issue1}","actorId":"bob","actorType":"user","createdAt":"{at}"}`},
	{"share", "at", `{"token":"0123456789abcdefghijklmnopqrstuv","issueId":"{issue1}","createdById":"ann","createdAt":"{at}"}`},
	{"share", "at", `{"token":"1123456789abcdefghijklmnopqrstuv","issueId":"{issue3}","createdById":"ann","createdAt":"{at}"}`},
	{"session", "session1", `{"id":"{session1}","issueId":"{issue1}","agentId":"a","provider":"p","actorId":"ann","actorType":"user","status":"running","plan":[{"id":"1","title":"T","status":"pending"}],{made}}`},
	{"session", "session2", `{"id":"{session2}","issueId":"{issue2}","agentId":"a","provider":"p","actorId":"ann","actorType":"user","status":"completed",{made}}`},
	{"session", "session3", `{"id":"{session3}","issueId":"{issue3}","agentId":"b","provider":"p","actorId":"ann","actorType":"user","status":"waiting",{made}}`},
	{"session", "session4", `{"id":"{session4}","issueId":"{gone}","agentId":"b","provider":"p","actorId":"ann","actorType":"user","status":"failed",{made}}`},
	{"session_state", "session1", `{"sessionId":"{session1}","claims":2,"attempts":2,"attempt":{"number":2,"claimedAt":"{at}","claimerId":"ann"}}`},
	{"session_state", "session3", `{"sessionId":"{session3}","predecessors":["{session1}"],"pending":["{session1}"],"park":{"reason":2}}`},
	{"session_instructions", "session1", `{"sessionId":"{session1}","instructions":"Do it."}`},
	{"activity", "activity1", `{"id":"{activity1}","sessionId":"{session1}","type":"action","message":"M","createdAt":"{at}"}`},
	{"activity", "activity2", `{"id":"{activity2}","sessionId":"{session1}","type":"action","message":"M","createdAt":"{at}"}`},
	{"activity", "activity3", `{"id":"{activity3}","sessionId":"{session2}","type":"action","message":"M","createdAt":"{at}"}`},
	{"attempt", "at", `{"sessionId":"{session1}","number":1,"claimedAt":"{at}","endedAt":"{at}","end":"lapsed","claimerId":"ann"}`},
	{"checkpoint", "session1", `{"sessionId":"{session1}","checkpoint":{"at":1}}`},
	{"usage", "usage1", `{"id":"{usage1}","at":"{at}","sessionId":"{session1}","issueId":"{issue1}","agentId":"a","inputTokens":1}`},
	{"usage", "usage2", `{"id":"{usage2}","at":"{at}","sessionId":"{gone}","issueId":"{issue2}","agentId":"a","inputTokens":2}`},
	{"usage", "usage3", `{"id":"{usage3}","at":"{at}","sessionId":"{gone}","issueId":"{gone}","agentId":"a","inputTokens":4}`},
	{"draft", "draft1", `{"id":"{draft1}","entityType":"issue","issueId":"{issue1}","kind":"comment","status":"pending","createdById":"a","sessionId":"{session1}","payload":{"body":"B"},{made}}`},
	{"draft", "draft2", `{"id":"{draft2}","entityType":"issue","issueId":"{issue2}","kind":"issue_create","status":"published","createdById":"a","reviewedById":"ann","reviewedAt":"{at}","payload":{"title":"T"},{made}}`},
	{"draft_state", "draft1", `{"draftId":"{draft1}"}`},
	{"support_channel", "channel", `{"id":"{channel}","type":"email","name":"C","isActive":true,{made}}`},
	{"inbound_secret", "at", `{"source":"chatapp1",{made}}`},
	{"ticket", "ticket1", `{"id":"{ticket1}","channelId":"{channel}","source":"api","subject":"S","from":"F","status":"open","issueId":"{issue1}","lastMessageAt":"{at}",{made}}`},
	{"ticket_message", "message1", `{"id":"{message1}","ticketId":"{ticket1}","direction":"inbound","authorId":"x","authorType":"system","body":"B","createdAt":"{at}"}`},
	{"ticket_message", "message2", `{"id":"{message2}","ticketId":"{ticket1}","direction":"outbound","authorId":"ann","authorType":"user","body":"B","createdAt":"{at}"}`},
	{"deal", "deal", `{"id":"{deal}","name":"D","stage":"new",{made}}`},
	{"webhook_subscription", "hook", `{"id":"{hook}","url":"https://example.com/h","events":["*"],"isActive":true,{made}}`},
	{"webhook_delivery", "delivery1", `{"id":"{delivery1}","subscriptionId":"{hook}","eventId":"{event}","eventType":"issue.created","eventSequence":1,"status":"succeeded","attempts":1,"createdAt":"{at}"}`},
	{"webhook_delivery", "delivery2", `{"id":"{delivery2}","subscriptionId":"{hook}","eventId":"{event}","eventType":"issue.created","eventSequence":1,"status":"failed","attempts":9,"createdAt":"{at}"}`},
	{"issued_user", "", `{"userId":"bob"}`},
	{"timer", "", `{"kind":"session.line","subject":"{session1}","due":"2027-01-01T00:00:00.000Z"}`},
	{"retention", "", `{"endedSessionsDays":1000,"closedIssues":"archive"}`},
}

// againWorld returns the lines with ids and times of some milliseconds, roughly in the order of an export.
func againWorld(rnd *rand.Rand) (team string, lines [][2]string) {
	const begin, span = 0x019350000000, 12
	ids := map[string]string{}
	hole := regexp.MustCompile(`\{(\w+)\}`)
	type placed struct {
		place string
		line  [2]string
	}
	at := func() (string, string) {
		ms := begin + rnd.IntN(span)
		return fmt.Sprintf("%012x", ms), string(At(timeOfMillis([]byte{0, 0, byte(ms >> 40), byte(ms >> 32), byte(ms >> 24), byte(ms >> 16), byte(ms >> 8), byte(ms)})))
	}
	id := func(name string) string {
		if ids[name] == "" {
			ms, _ := at()
			last := rnd.IntN(1<<40) << 8
			ids[name] = fmt.Sprintf("%s-%s-7%03x-8%03x-%012x", ms[:8], ms[8:], rnd.IntN(1<<12), rnd.IntN(1<<12), last)
		}
		return ids[name]
	}
	var all []placed
	for _, l := range againLines {
		place := ""
		text := strings.ReplaceAll(l.data, `{made}`, `"createdAt":"{at}","updatedAt":"{at}"`)
		text = hole.ReplaceAllStringFunc(text, func(name string) string {
			switch name = strings.Trim(name, "{}"); name {
			case "at":
				ms, text := at()
				if l.after == "at" && place == "" {
					place = ms[:8] + "-" + ms[8:] + "~"
				}
				return text
			case "sum":
				return fmt.Sprintf("%x", sumOf([]byte("\x89PNG\r\n\x1a\n1")))
			}
			return id(name)
		})
		switch {
		case l.after == "":
			place = "~"
		case l.after != "at":
			place = id(l.after)
		}
		all = append(all, placed{place, [2]string{l.kind, text}})
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.place, b.place) })
	for range rnd.IntN(10) {
		i, j := rnd.IntN(len(all)), rnd.IntN(len(all))
		all[i], all[j] = all[j], all[i]
	}
	for _, p := range all {
		lines = append(lines, p.line)
	}
	return id("team1"), lines
}

// exportedRecords returns the lines of the workspace's export, without those of its owner. An import keeps the numbers of
// a team whose line comes late under the team's key, as those of a key that was used before.
func (im *lineImport) exportedRecords() (lines [][2]string) {
	im.Helper()
	for line := range bytes.Lines(im.exported(im.home.Workspace.ID, &ExportIn{}, exportWindow)) {
		var l importedLine
		if err := json.Unmarshal(line, &l); err != nil {
			im.Fatal(err)
		}
		switch l.Type {
		case exportWorkspace, exportEnd:
			continue
		case "member", "token":
			if bytes.Contains(l.Data, []byte(im.home.Workspace.OwnerID)) {
				continue
			}
		case "retired_team_key":
			if !bytes.Contains(l.Data, []byte("OLD")) {
				continue
			}
		}
		lines = append(lines, [2]string{l.Type, strings.ReplaceAll(string(l.Data), string(im.home.Workspace.ID), "W")})
	}
	return lines
}

// A workspace that an import has filled can be exported and imported again, and comes out the same. The first
// file is none of this service's: its records have any ids and times, and an order of its own.
func TestImport_TakesTheExportOfWhatItTook(t *testing.T) {
	t.Parallel()
	const seeds = 40
	taken, ended := map[string]bool{}, 0
	for seed := range uint64(seeds) {
		team, lines := againWorld(rand.New(rand.NewPCG(seed, 1)))
		fields := fmt.Sprintf(`"defaultTeamId":%q,`, team)
		first := newLineImportOf(t, fields)
		for more := true; more; { // a line may be refused until another one has come
			more = false
			lines = slices.DeleteFunc(lines, func(l [2]string) bool {
				if first.line(l[0], l[1]) != nil {
					return false
				}
				taken[l[0]], more = true, true
				return true
			})
		}
		if first.end() != nil {
			continue // a line was refused that others need
		}
		ended++
		first.verify()
		want := first.exportedRecords()
		second := newLineImportOf(t, fields)
		for _, l := range want {
			if err := second.line(l[0], l[1]); err != nil {
				t.Errorf("seed %d: %v\n%s %s", seed, err, l[0], l[1])
			}
		}
		if err := second.end(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		second.verify()
		got := second.exportedRecords()
		if len(got) != len(want) {
			t.Errorf("seed %d: the copy has %d records instead of %d", seed, len(got), len(want))
		}
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Errorf("seed %d: the copy has %s\nwas %s", seed, got[i], want[i])
				break
			}
		}
	}
	if ended < seeds/2 {
		t.Errorf("%d of %d files were taken to their end", ended, seeds)
	}
	for _, kind := range transferKinds {
		if !taken[kind.name] {
			t.Errorf("no line of type %s was taken", kind.name)
		}
	}
}
