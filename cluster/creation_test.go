package cluster

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/storage"
)

// image makes the image of a shard and returns its stream.
func (r *running) image(t *testing.T, shard storage.Shard) (*Image, []byte) {
	t.Helper()
	epoch, err := r.BeginImage(shard, time.Now().Add(10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	image, err := r.Image(t.Context(), shard, epoch, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := io.ReadAll(image)
	if err := errors.Join(err, image.Close()); err != nil {
		t.Fatal(err)
	}
	if print, err := Fingerprint(t.Context(), r.store, shard); err != nil || print != image.Fingerprint() {
		t.Errorf("the fingerprint is %s, and that of the shard %s, %v", image.Fingerprint(), print, err)
	}
	return image, stream
}

// A node is made from images of another one's shards, and goes on where they end, in a later
// epoch and a cluster of its own.
func TestCreation_GoesOnWhereTheImagesEnd(t *testing.T) {
	t.Parallel()
	const shards = 2
	fs := vfs.NewMem()
	old := start(t, settings{fs: fs, dir: "old", shards: shards})
	store := openStore(t, fs, "new")
	c, err := NewCreation(store, "made", shards, storage.FormatNewest)
	if err != nil {
		t.Fatal(err)
	}
	at := map[storage.Shard]*Image{}
	for shard := range storage.Shard(shards + 1) {
		old.mustPropose(t, shard, "before")
		image, stream := old.image(t, shard)
		old.mustPropose(t, shard, "after")
		if again, err := old.Image(t.Context(), shard, image.Epoch, image.Index, nil); err != nil {
			t.Error(err)
		} else if err := again.Close(); err != nil {
			t.Error(err)
		}
		in, err := store.Import(shard)
		if err != nil {
			t.Fatal(err)
		}
		_, err = in.Write(stream)
		if err := errors.Join(err, in.Finish(t.Context()), in.Ingest(t.Context()), in.Close()); err != nil {
			t.Fatal(err)
		}
		if err := c.TakeOver(shard, image.Index+1, image.Epoch); err == nil {
			t.Error("an image of another index was taken")
		}
		if shard == shards {
			if _, err := c.Finish(); err == nil {
				t.Error("a node without one of its shards was made")
			}
		}
		if err := c.TakeOver(shard, image.Index, image.Epoch); err != nil {
			t.Fatal(err)
		}
		at[shard] = image
	}
	cluster, err := c.Finish()
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	for life := range 2 {
		r := start(t, settings{fs: fs, dir: "new"})
		if r.ClusterID() != cluster || cluster == old.ClusterID() || r.Name() != "made" || r.Shards() != shards {
			t.Fatalf("node %s of cluster %s with %d shards", r.Name(), r.ClusterID(), r.Shards())
		}
		for shard, image := range at {
			epoch, ok := r.Owner(shard)
			if !ok || epoch <= image.Epoch {
				t.Errorf("shard %d: epoch %d after %d, %t", shard, epoch, image.Epoch, ok)
			}
			if !r.has(t, shard, "before") || r.has(t, shard, "after") {
				t.Errorf("shard %d does not have the rows of its image", shard)
			}
			if first, _ := r.group(shard).log.Bounds(); life == 0 && first <= image.Index {
				t.Errorf("the log of shard %d begins at %d, before the end of the image at %d", shard, first, image.Index)
			}
			if life > 0 && !r.has(t, shard, "more") {
				t.Errorf("shard %d has lost a write", shard)
			}
			r.mustPropose(t, shard, "more")
		}
		r.stop()
	}
}

// An image of a shard that did not change need not be made.
func TestImage_Unchanged(t *testing.T) {
	t.Parallel()
	r := start(t, settings{fs: vfs.NewMem(), dir: "node", shards: 1})
	r.mustPropose(t, 1, "row")
	image, _ := r.image(t, 1)
	if _, err := r.Image(t.Context(), 1, image.Epoch, image.Index, nil); !errors.Is(err, ErrUnchanged) {
		t.Errorf("the error is %v", err)
	}
	if _, err := r.Image(t.Context(), 1, image.Epoch+1, 0, nil); err == nil {
		t.Error("an image was made in an epoch that this node does not own the shard in")
	}
}
