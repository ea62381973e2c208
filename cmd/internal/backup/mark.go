package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
)

// markDir is the folder of marks. A node's mark says up to which moment the log of each shard is in
// the archive: of a shard that nobody writes to, no segment could tell.
const markDir = "marks/"

// maxMark bounds a mark in bytes.
const maxMark = 1 << 20

// archivedLog is what the segments of a shard have.
type archivedLog struct {
	Shard int `json:"shard"`
	// The segments have all entries behind After, up to Last.
	After uint64 `json:"after"`
	Last  uint64 `json:"last"`
	// Every write that was acknowledged before At has an index of at most Last. At is what the clock
	// of the owner said in the last pass: if that was set back, At goes back with it.
	At time.Time `json:"at"`
	// Lost and LostAt are Last and At before the last gap; absent: there was none.
	Lost   uint64    `json:"lost,omitempty"`
	LostAt time.Time `json:"lostAt,omitzero"`
	// Pass counts the passes that have looked at the log, on any node; absent: nodes of an older
	// version, which do not count.
	Pass uint64 `json:"pass,omitempty"`
}

// newer reports whether l was found out after other. The entries and the passes decide before the
// times, since a clock may have been set back.
func (l *archivedLog) newer(other *archivedLog) bool {
	switch {
	case l.Last != other.Last:
		return l.Last > other.Last
	case l.Pass != other.Pass && l.Pass != 0 && other.Pass != 0:
		return l.Pass > other.Pass
	}
	return l.At.After(other.At)
}

// mark is the file of a node.
type mark struct {
	Version   int           `json:"version"`
	ClusterID string        `json:"clusterId"`
	Node      string        `json:"node"`
	Logs      []archivedLog `json:"logs"`
}

const markVersion = 1

func (a *Archive) markName(cluster, node string) string {
	name := markDir + cluster + "-" + node + manifestSuffix
	if a.key != nil {
		name += sealedSuffix
	}
	return name
}

// markedBy returns the name of a node in its mark. It differs by key: after a change of the key, the mark with
// the old one goes on saying how far the segments with the old one lead.
func (a *Archive) markedBy(node string) string {
	if a.key == nil {
		return node
	}
	const digits = 8
	return node + "-" + a.key.name(markDir)[:digits]
}

// text returns the content of the file. It is the same after the mark was read.
func (m *mark) text() (string, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("encode a mark: %w", err)
	}
	return string(text), nil
}

// putMark replaces the mark of a node.
func (a *Archive) putMark(ctx context.Context, m *mark) error {
	text, err := m.text()
	if err != nil {
		return err
	}
	return a.put(ctx, markDir, a.markName(m.ClusterID, m.Node), text)
}

// put replaces a small file.
func (a *Archive) put(ctx context.Context, folder, name, text string) (err error) {
	out, err := a.create(folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.draft.Discard()) }()
	if _, err = io.WriteString(out, text); err == nil {
		_, err = out.finish()
	}
	if err == nil {
		err = out.draft.Keep(ctx, name)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// begunName is the name of the file that a node has in the folder of segments while it archives into the place.
func (a *Archive) begunName(cluster, node string) string {
	return logDir + strings.TrimPrefix(a.markName(cluster, node), markDir)
}

// putBegun notes that a node archives into the place.
func (a *Archive) putBegun(ctx context.Context, cluster, node string) error {
	text, err := (&mark{Version: markVersion, ClusterID: cluster, Node: node}).text()
	if err != nil {
		return err
	}
	return a.put(ctx, logDir, a.begunName(cluster, node), text)
}

// begun reports whether a node has archived into the place. If the segments were removed, or another place is
// under the name, this file is missing, too.
func (a *Archive) begun(ctx context.Context, cluster, node string) (bool, error) {
	_, err := a.place.Size(ctx, a.begunName(cluster, node))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the archived logs in %s: %w", a, err)
	}
	return true, nil
}

// marks reads the marks of the nodes of a cluster. Those of another key are about its segments. Those that
// can't be read are passed over: without them less is known, and nothing wrong. The error is that of the
// place.
func (a *Archive) marks(ctx context.Context, cluster string) (all []mark, unread, err error) {
	files, err := a.place.List(ctx, markDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list the marks in %s: %w", a, err)
	}
	for _, file := range files {
		name, sealed := strings.CutSuffix(file.Name, sealedSuffix)
		if !strings.HasPrefix(name, markDir+cluster+"-") || !strings.HasSuffix(name, manifestSuffix) || sealed != (a.key != nil) {
			continue
		}
		m, err := a.mark(ctx, file.Name)
		if errors.Is(err, errOtherKey) {
			continue
		}
		if err == nil && (m.ClusterID != cluster || m.Version != markVersion || a.markName(m.ClusterID, m.Node) != file.Name) {
			err = errors.New("it is not the mark of its name")
		}
		if err != nil {
			unread = errors.Join(unread, fmt.Errorf("read %s: %w", file.Name, err))
			continue
		}
		all = append(all, *m)
	}
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	return all, unread, nil
}

func (a *Archive) mark(ctx context.Context, name string) (*mark, error) {
	in, err := a.place.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	content, err := a.unsealed(in)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(content, maxMark+1))
	if err == nil && len(text) > maxMark {
		err = errors.New("it is too large")
	}
	if err != nil {
		return nil, err
	}
	m := &mark{}
	return m, json.Unmarshal(text, m)
}
