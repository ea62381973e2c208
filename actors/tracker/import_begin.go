package tracker

import (
	"bytes"
	"encoding/json"
	"fmt"

	"switchyard/storage"
)

// BeginImportIn is the first line of an export.
type BeginImportIn struct {
	Body []byte `raw:"json"`
}

// BeginImport makes the workspace that an export is of, under its own id, for the
// operator. The other lines follow with ImportLines. A repeat answers with the progress.
var BeginImport = NewWorkflow[BeginImportIn, ImportAnswer]("BeginImport", "Begin the import of a workspace", Needs{Level: Operator}, beginImport, WithoutKey, BodyUpTo(maxImportMany), Answers(Done, Created), Refuses(CodeConflict), Audits(auditWorkspace))

func beginImport(f Flow, in *BeginImportIn) (Reply, error) {
	text := append(bytes.TrimRight(in.Body, "\r\n"), '\n')
	lines, err := parseLines(text)
	if err != nil {
		return Reply{}, err
	}
	ws, err := workspaceLine(&lines[0])
	if err != nil {
		return Reply{}, err
	}
	rights, err := checkCreation(f)
	if err != nil {
		return Reply{}, err
	}
	step := directoryStep{ws.ID}
	held, err := ask[reservation](f, storage.DirectoryID, reservationOp, &step)
	if err != nil {
		return Reply{}, err
	}
	if held.Founded {
		return knownImport(f, step, text)
	}
	if held.Exists {
		return Reply{}, errBeingMade()
	}
	permit := rights.permit(ws.ID)
	entry, err := reserveSlug(f, permit, &reserveSlugIn{Workspace: ws.ID, Slug: ws.Slug, Owner: ws.OwnerID})
	if err != nil {
		return Reply{}, err
	}
	creation := importFoundIn{Line: string(text), Reserved: entry.CreatedAt}
	reply, err := f.CommandAs(permit, asOwner(f.Request().Caller), step.id(), importFoundOp, &creation)
	if err != nil {
		if notApplied(err) {
			_, _ = f.Command(permit, storage.DirectoryID, releaseSlugOp, &releaseSlugIn{step, &entry.CreatedAt}) // else the timer does it
		}
		return Reply{}, err
	}
	if _, err := f.Command(permit, storage.DirectoryID, activateSlugOp, &step); err != nil {
		return Reply{}, err
	}
	return reply, nil
}

// knownImport answers for a workspace that exists: with its progress if it is the import
// of this file.
func knownImport(f Flow, step directoryStep, text []byte) (Reply, error) {
	known, err := ask[importLook](f, step.id(), importLookOp, &None{})
	if err != nil {
		return Reply{}, err
	}
	if known.Import == nil || !bytes.Equal(known.First, sumOf(text)) {
		return Reply{}, Conflict("There is a workspace with this id.", "Delete it first, or import the file into an empty workspace with POST /workspaces/{id}/import.")
	}
	return jsonReply(Done, ImportAnswer{*known.Import})
}

// importLook is a workspace's import, if there is one.
type importLook struct {
	Import *Import `json:"import"`
	First  []byte  `json:"first"`
}

var importLookOp = NewQuery[None, importLook]("ImportLook", "Look for a workspace's import", Needs{}, func(v *View, _ *None) (Reply, error) {
	row, err := imports.Get(v, nil)
	if err != nil {
		return Reply{}, fmt.Errorf("read the import: %w", err)
	}
	if row == nil {
		return jsonReply(Done, importLook{})
	}
	p, err := row.Value.progress()
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, importLook{p, row.Value.First})
})

// workspaceLine reads the workspace of the first line.
func workspaceLine(l *importedLine) (*Workspace, error) {
	if l.n() != 0 || l.Type != exportWorkspace {
		return nil, BadRequest(Fault{Message: "Must be the first line of an export, of type workspace and with n 0."})
	}
	if l.Version != exportVersion {
		return nil, l.fault("Has version %d of the format. This service reads version %d.", l.Version, exportVersion)
	}
	ws := &Workspace{}
	if err := json.Unmarshal(l.Data, ws); err != nil {
		return nil, l.fault("Not a workspace: %v.", err)
	}
	id, ok := storage.ParseID(ws.ID)
	switch {
	case !ok || !plausibleID(id):
		return nil, l.fault("data.id must be the id of a workspace.")
	case !isSlug(ws.Slug):
		return nil, l.fault("data.slug must be 1 to 64 of a to z, 0 to 9 and hyphens.")
	case ws.Name == "" || ws.OwnerID == "" || isLonger(string(ws.OwnerID), 255):
		return nil, l.fault("data.name and data.ownerId must have 1 to 255 characters.")
	}
	if ws.Key != nil {
		if key, ok := upperKey(*ws.Key); !ok || key != *ws.Key {
			return nil, l.fault("data.key must be 1 to 10 of A to Z and 0 to 9.")
		}
	}
	if fault := transferFault(l.Type, ws); fault != "" {
		return nil, l.fault("%s", fault)
	}
	return ws, nil
}

// importFoundIn is the first line of the file, and the time when the slug was reserved.
type importFoundIn struct {
	Line     string    `json:"line"`
	Reserved Timestamp `json:"reserved"`
}

// importFoundOp makes the workspace of an import with its owner only.
var importFoundOp = NewCommand[importFoundIn, ImportAnswer]("FoundImport", "Make the workspace of an import", Needs{}, func(tx *Tx, in *importFoundIn) (Reply, error) {
	lines, err := parseLines([]byte(in.Line))
	if err != nil {
		return Reply{}, err
	}
	file, err := workspaceLine(&lines[0])
	if err != nil {
		return Reply{}, err
	}
	key := ""
	if file.Key != nil {
		key = *file.Key
	}
	ws, err := tx.foundWorkspace(&foundIn{Name: file.Name, Slug: file.Slug, Key: key, Owner: file.OwnerID, Reserved: in.Reserved})
	if err != nil {
		return Reply{}, err
	}
	ws.Key, ws.CreatedAt, ws.UpdatedAt = file.Key, file.CreatedAt, file.UpdatedAt
	if _, err := workspaces.Insert(tx, ws); err != nil {
		return Reply{}, fmt.Errorf("found a workspace: %w", err)
	}
	record := tx.newImport(&lines[0], file)
	record.Operator = true
	if err := tx.takeLines(record, lines); err != nil {
		return Reply{}, err
	}
	if _, err := imports.Insert(tx, record); err != nil {
		return Reply{}, fmt.Errorf("note the import: %w", err)
	}
	return record.answer(Created)
}, RunsWithoutWorkspace, Audits(auditWorkspace))

func (tx *Tx) newImport(first *importedLine, file *Workspace) *importRecord {
	now := At(tx.now)
	return &importRecord{
		Import: Import{OrganizationID: WorkspaceID(tx.Workspace().String()), State: ImportRunning, CreatedAt: now, UpdatedAt: now},
		First:  sumOf(first.text), Counts: map[string]int64{}, DefaultTeamID: file.DefaultTeamID,
	}
}

// keptByFilling are the kinds of records that a workspace may have when an import begins
// to fill it: what onboarding makes, its people and their tokens.
var keptByFilling = map[string]bool{"settings": true, "team": true, "team_member": true, "member": true, "token": true, "issued_user": true, "agent": true}

// fillEmpty begins an import into this workspace, which must be empty. The teams make room
// for those of the file; id, slug and owner stay.
func (tx *Tx) fillEmpty(first *importedLine) (*importRecord, error) {
	file, err := workspaceLine(first)
	if err != nil {
		return nil, err
	}
	for i := range transferKinds {
		kind := &transferKinds[i]
		if keptByFilling[kind.name] {
			continue
		}
		for _, table := range kind.tables {
			if table == timerTable {
				continue
			}
			there, err := tx.any(table)
			if err != nil {
				return nil, err
			}
			if there {
				return nil, Conflict("The workspace is not empty: it has records of type "+kind.name+".", "Import into a workspace that was just made, or have the operator make one of the file.")
			}
		}
	}
	row, err := tx.workspace()
	if err != nil {
		return nil, err
	}
	if err := tx.dropTeams(); err != nil {
		return nil, err
	}
	ws := row.Value
	ws.Name, ws.Key, ws.DefaultTeamID, ws.CreatedAt, ws.UpdatedAt = file.Name, file.Key, nil, file.CreatedAt, file.UpdatedAt
	if _, err := workspaces.Update(tx, row, &ws); err != nil {
		return nil, fmt.Errorf("fill a workspace: %w", err)
	}
	return tx.newImport(first, file), nil
}

// any reports whether a table has a row.
func (v *View) any(table storage.TableID) (there bool, err error) {
	err = v.Rows(table, nil, nil, func(_, _ []byte) (bool, error) { there = true; return false, nil })
	if err != nil {
		return false, fmt.Errorf("look into table %d: %w", table, err)
	}
	return there, nil
}

// dropTeams removes the teams of a workspace without issues.
func (tx *Tx) dropTeams() error {
	var all []*storage.Row[Team]
	err := teams.Scan(tx, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		row, err := teams.Decode(rec)
		all = append(all, row)
		return true, err
	})
	if err != nil {
		return fmt.Errorf("read the teams: %w", err)
	}
	for _, row := range all {
		if err := tx.emptyTeam(row.Team); err != nil {
			return err
		}
		if err := teams.Delete(tx, row); err != nil {
			return fmt.Errorf("remove a team: %w", err)
		}
	}
	return tx.countRecord(teamTable, -len(all))
}
