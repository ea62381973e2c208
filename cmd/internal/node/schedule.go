package node

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"time"

	"switchyard/actors/tracker"
	"switchyard/cmd/internal/backup"
	"switchyard/httpapi"
	"switchyard/storage"
)

// schedule has backups of the cluster taken while this node owns the directory. They are asked
// for with the operator's token over the API, through a listener within the process, so that
// they are what `switchyard backup` takes.
type schedule struct {
	*backup.Schedule
	to    string
	local *localListener
	logs  *backup.LogArchiver // nil: logs are not archived

	cancel  context.CancelFunc
	running sync.WaitGroup
	ended   chan struct{} // closed when nothing runs any more; nil: nothing was begun
}

// seenFile names in the data directory the place in which this node has seen backups.
const seenFile = "backups-seen"

// newSchedule returns nil if no backups are scheduled.
func (n *Node) newSchedule() (*schedule, error) {
	cfg := n.cfg.Backups
	if cfg.To == "" {
		return nil, nil
	}
	to, err := n.cfg.archive()
	if err != nil {
		return nil, err
	}
	s := &schedule{to: cfg.To, local: newLocalListener()}
	client, err := backup.NewClient("http://localhost", n.cfg.RootToken)
	if err != nil {
		return nil, err
	}
	client.Via(s.local.dial)
	s.Schedule = &backup.Schedule{
		To: to, Every: cfg.every(), SeenIn: filepath.Join(n.cfg.Data, seenFile), Now: time.Now, Logger: n.cfg.Logger,
		Cluster: n.groups.ClusterID,
		Leads: func() (bool, <-chan struct{}) {
			_, here, changed := n.groups.ShardOwner(storage.DirectoryShard)
			return here, changed
		},
		Take: func(ctx context.Context, progress func(backup.Progress)) (string, *backup.Manifest, error) {
			return backup.Take(ctx, backup.Taking{Client: client, To: to, Keep: cfg.Keep, Now: time.Now, Progress: progress})
		},
	}
	s.logs = n.newLogArchiver(s)
	return s, nil
}

// begin starts the goroutines of the schedule and of the archive of the logs, which stop ends.
func (s *schedule) begin() {
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(context.Background())
	s.ended = make(chan struct{})
	s.running.Go(func() { s.Run(ctx) })
	if s.logs != nil {
		s.running.Go(func() { s.logs.Run(ctx) })
	}
	go func() {
		s.running.Wait()
		close(s.ended)
	}()
}

// scheduleStop is how long a stop waits for the goroutines of the schedule. The place of the backups may hang,
// such as a file system of another machine, and the rest of the node needs the time.
const scheduleStop = 2 * time.Second

// stop ends the backup that is being taken and the archive of the logs, and waits for them for a time. The
// process ends those that hang in the place of the backups.
func (s *schedule) stop(ctx context.Context) {
	if s == nil || s.ended == nil {
		return
	}
	s.cancel()
	ctx, cancel := context.WithTimeout(ctx, scheduleStop)
	defer cancel()
	select {
	case <-s.ended:
	case <-ctx.Done():
		s.Logger.Warn("the node stops although the place of the backups still holds up a backup, or the archive of the logs", "place", s.to)
	}
}

// wire is what GET /cluster shows.
func (s *schedule) wire(now time.Time) *httpapi.BackupStatus {
	if s == nil {
		return nil
	}
	status := s.Status()
	out := &httpapi.BackupStatus{To: s.to, EverySeconds: int64(s.Every / time.Second), Failures: status.Failures}
	if status.Name != "" {
		at, age := tracker.At(status.Moment), int64(status.Age(now))
		out.LastName, out.LastAt, out.AgeSeconds = &status.Name, &at, &age
	}
	if status.Error != "" {
		out.Error = &status.Error
	} else if refused := s.Refused(); refused != nil { // a node that takes no backups has not tried
		text := refused.Error()
		out.Error = &text
	}
	out.Log = s.wireLog(now)
	return out
}

// localListener accepts connections from within the process.
type localListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newLocalListener() *localListener {
	return &localListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// dial returns a connection that Accept returns the other end of.
func (l *localListener) dial(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *localListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *localListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *localListener) Addr() net.Addr { return localAddr{} }

type localAddr struct{}

func (localAddr) Network() string { return "local" }

func (localAddr) String() string { return "this process" }
