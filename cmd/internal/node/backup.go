package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"switchyard/actors"
	"switchyard/actors/tracker"
	"switchyard/cluster"
	"switchyard/httpapi"
	"switchyard/storage"
)

const (
	// imageBlock is the number of bytes of an image that are read at a time.
	imageBlock = 256 << 10
	// copyingEvery is how often a line says that an image is being made.
	copyingEvery = 5 * time.Second
)

// images are the few copies that this node has at once: images of shards for backups, each a copy
// on the disk, or rows of workspaces that move.
type images struct {
	ctx    context.Context // ends when the node stops
	cancel context.CancelFunc
	slot   chan struct{}
	rests  imageRests
	sent   sentImages
}

// imagesAtOnce is how many images of shards a node makes or sends at once.
const imagesAtOnce = 2

func newImages(atOnce int) *images {
	i := &images{slot: make(chan struct{}, atOnce)}
	i.ctx, i.cancel = context.WithCancel(context.Background())
	return i
}

// slotWait is how long a request waits for an image before it to end: a backup asks for a shard
// as soon as it has one before.
const slotWait = 2 * time.Second

// begin reports whether another image may begin now.
func (i *images) begin() bool {
	late := time.NewTimer(slotWait)
	defer late.Stop()
	select {
	case i.slot <- struct{}{}:
		return true
	case <-late.C:
	case <-i.ctx.Done():
	}
	return false
}

// stop ends all images, and waits for them until ctx ends. None begins afterwards.
func (i *images) stop(ctx context.Context) error {
	i.cancel()
	for range cap(i.slot) {
		select {
		case i.slot <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("end the image of a shard: %w", ctx.Err())
		}
	}
	return nil
}

// shardImage is the answer to a backup's request for a shard. One goroutine makes the image,
// and ends by the time that Close returns.
type shardImage struct {
	node   *Node
	ctx    context.Context
	cancel context.CancelFunc
	head   httpapi.ImageHead
	same   httpapi.ImageHead // the answer if the shard has not changed
	rests  func(work time.Duration) time.Duration

	made  chan struct{} // closed when image and err are set
	image *cluster.Image
	err   error

	request  *tracker.Request
	recorded bool // in the audit

	begun bool // the head was sent
	ended bool
	block []byte
}

// beginImage begins to copy a shard that this node owns. Writes that are acknowledged by now
// are in the image.
func (n *Node) beginImage(req *tracker.Request, op *tracker.Op, in *httpapi.BackupShardIn) (tracker.Lines, error) {
	if err := req.Admitted(op); err != nil {
		return nil, err
	}
	number, ok := in.Number()
	if !ok || number > n.groups.Shards() {
		return nil, &tracker.Error{Code: tracker.CodeNotFound, Message: fmt.Sprintf("There is no shard %q.", in.Shard), Hint: "GET /cluster lists the shards."}
	}
	if n.store.Space().Full() {
		return nil, tracker.NotApplied("The node's disk is short of space, which the copy of a shard needs.")
	}
	if !n.images.begin() {
		return nil, tracker.NotApplied("The node is sending other shards to backups.")
	}
	shard := storage.Shard(number)
	epoch, err := n.groups.BeginImage(shard, req.Deadline)
	if err != nil {
		<-n.images.slot
		if _, here, _ := n.groups.ShardOwner(shard); !here {
			return nil, tracker.Moved("This node does not serve the shard.")
		}
		return nil, tracker.NotApplied("The shard can't be read now: " + err.Error() + ".")
	}
	unless := uint64(max(0, in.Unless.Value))
	same, ok := n.images.sent.at(number, unless)
	if !ok {
		unless = 0
	}
	// The entry of the audit comes before the image. That of the directory has its own entry then,
	// and is unchanged when it is asked for again.
	recorded := n.groups.ShardStats(shard).Applied != unless && !req.HeadOnly
	if recorded {
		if err := n.recordCopy(req, "shard", strconv.Itoa(number)); err != nil {
			<-n.images.slot
			return nil, err
		}
	}
	s := &shardImage{node: n, request: req, recorded: recorded, same: same, rests: n.rests(time.Now()), made: make(chan struct{}), head: httpapi.ImageHead{
		Version: httpapi.ImageVersion, ClusterID: n.groups.ClusterID(), Shard: number,
	}}
	s.ctx, s.cancel = context.WithCancel(n.images.ctx)
	if req.HeadOnly {
		close(s.made)
		return s, nil
	}
	go func() {
		defer close(s.made)
		s.image, s.err = n.groups.Image(s.ctx, shard, epoch, unless, s.rests)
	}()
	return s, nil
}

// Next implements tracker.Lines.
func (s *shardImage) Next() ([]byte, error) {
	if s.ended {
		return nil, io.EOF
	}
	if !s.begun {
		return s.first()
	}
	s.rest()
	n, err := io.ReadFull(s.image, s.block)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		s.ended, err = true, nil
	}
	if err == nil && n == 0 {
		return nil, io.EOF
	}
	return s.block[:n], err
}

// rest waits before a block is sent, if requests are carried out.
func (s *shardImage) rest() {
	rest := s.rests(blockWork)
	if rest <= 0 {
		return
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
	}
}

// first returns a line of JSON: the head, once it is known.
func (s *shardImage) first() ([]byte, error) {
	wait := time.NewTimer(copyingEvery)
	defer wait.Stop()
	select {
	case <-s.made:
	case <-wait.C:
		return line(&httpapi.ImageHead{Copying: true, Shard: s.head.Shard})
	}
	head := s.head
	if s.err == nil && !s.recorded {
		// The shard has changed since it was looked at.
		req := *s.request
		req.Deadline = time.Now().Add(s.node.cfg.RequestTimeout)
		if s.err = s.node.recordCopy(&req, "shard", strconv.Itoa(head.Shard)); s.err != nil {
			return line(s.failed())
		}
	}
	switch {
	case errors.Is(s.err, cluster.ErrUnchanged):
		head, s.ended = s.same, true
	case s.err != nil:
		return line(s.failed())
	default:
		print := s.image.Fingerprint()
		head.Index, head.Epoch, head.Bytes = s.image.Index, s.image.Epoch, s.image.Size()
		head.Rows, head.Fingerprint = print.Rows, print.String()
		s.node.images.sent.note(&head)
		s.begun, s.block = true, make([]byte, imageBlock)
	}
	return line(&head)
}

// failed ends the lines with the reason why there is no image.
func (s *shardImage) failed() *httpapi.ImageHead {
	s.node.cfg.Logger.Error("could not copy a shard for a backup", "shard", s.head.Shard, "error", s.err)
	s.ended = true
	return &httpapi.ImageHead{Error: s.err.Error(), Shard: s.head.Shard}
}

func line(head *httpapi.ImageHead) ([]byte, error) {
	text, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("encode the head of an image: %w", err)
	}
	return append(text, '\n'), nil
}

// Close implements tracker.Lines.
func (s *shardImage) Close() {
	s.cancel()
	<-s.made
	if s.image != nil {
		if err := s.image.Close(); err != nil {
			s.node.cfg.Logger.Error("remove the copy of a shard", "shard", s.head.Shard, "error", err)
		}
	}
	<-s.node.images.slot
}

// imageEngine is the engine with the exports that the node itself runs: images of shards, and rows
// of workspaces.
type imageEngine struct {
	*actors.Engine
	node *Node
}

// Export implements httpapi.Engine.
func (e *imageEngine) Export(req *tracker.Request, op *tracker.Op, in any) (tracker.Lines, error) {
	if asked, ok := in.(*httpapi.BackupShardIn); ok {
		return e.node.beginImage(req, op, asked)
	}
	if asked, ok := in.(*httpapi.WorkspaceRowsIn); ok {
		return e.node.beginRows(req, op, asked)
	}
	return e.Engine.Export(req, op, in)
}
