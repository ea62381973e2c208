package systemtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// largestScreenshot is the most a screenshot may have, in bytes.
const largestScreenshot = 5 << 20

// picture is n bytes that begin like a PNG, and can't be compressed.
func picture(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	copy(b, "\x89PNG\r\n\x1a\n")
	return b
}

func captureBody(content []byte) map[string]any {
	return map[string]any{"url": "https://example.com/page", "screenshot": map[string]any{"contentBase64": base64.StdEncoding.EncodeToString(content)}}
}

// captured is what the tests look at of a capture's attachment.
type captured struct {
	ID, IssueID, URL, SHA256 string
	Size                     int
}

// capture posts a screenshot and gives its attachment.
func (c *Client) capture(ctx context.Context, workspace string, content []byte) (a captured, err error) {
	var issue Issue
	if err := c.Decode(ctx, "POST", "/workspaces/"+workspace+"/capture", captureBody(content), http.StatusCreated, &issue); err != nil {
		return a, err
	}
	var list struct{ Attachments []captured }
	if err := c.Decode(ctx, "GET", "/workspaces/"+workspace+"/issues/"+issue.ID+"/attachments", nil, http.StatusOK, &list); err != nil {
		return a, err
	}
	if len(list.Attachments) != 1 || list.Attachments[0].IssueID != issue.ID {
		return a, fmt.Errorf("issue %s has the attachments %+v", issue.ID, list.Attachments)
	}
	return list.Attachments[0], nil
}

// holds checks that the node gives exactly these bytes.
func (c *Client) holds(ctx context.Context, a captured, content []byte) error {
	got, err := c.Do(ctx, "GET", a.URL, nil)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	if got.Status != http.StatusOK || !bytes.Equal(got.Body, content) || a.Size != len(content) || a.SHA256 != hex.EncodeToString(sum[:]) {
		return fmt.Errorf("%s is %d with %d bytes, want those %d of %+v", a.URL, got.Status, len(got.Body), len(content), a)
	}
	if kind := got.Header.Get("Content-Type"); kind != "image/png" || got.Header.Get("ETag") != `"`+a.SHA256+`"` {
		return fmt.Errorf("%s is %s with ETag %s", a.URL, kind, got.Header.Get("ETag"))
	}
	if again, err := c.Do(ctx, "GET", a.URL, nil, "If-None-Match", got.Header.Get("ETag")); err != nil || again.Status != http.StatusNotModified || len(again.Body) != 0 {
		return fmt.Errorf("a repeat of %s is %d, %w", a.URL, again.Status, err)
	}
	return nil
}

// faultsOf lists the paths of an answer's faults.
func faultsOf(t *testing.T, a Answer) (paths []string) {
	t.Helper()
	var told struct {
		Details struct{ Issues []struct{ Path string } }
	}
	if err := json.Unmarshal(a.Body, &told); err != nil {
		t.Fatalf("%s: %v", a.Body, err)
	}
	for _, issue := range told.Details.Issues {
		paths = append(paths, issue.Path)
	}
	return paths
}

// The largest screenshot goes through a node alone; a byte more does not.
func TestCapture_LargestScreenshot(t *testing.T) {
	t.Parallel()
	n := inProcess(t, nil)
	c := NewClient("http://"+n.HTTPAddr(), "", 4)
	o, err := c.Onboard(t.Context(), "Captured", "captured")
	if err != nil {
		t.Fatal(err)
	}
	c.Token = o.Token.Token
	at := "/workspaces/" + o.Workspace.ID
	for _, size := range []int{8, 256 << 10, 256<<10 + 1, largestScreenshot} {
		content := picture(size)
		a, err := c.capture(t.Context(), o.Workspace.ID, content)
		if err == nil {
			err = c.holds(t.Context(), a, content)
		}
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
	}
	tooLarge, err := c.Do(t.Context(), "POST", at+"/capture", captureBody(picture(largestScreenshot+1)))
	if err != nil || tooLarge.Status != http.StatusBadRequest || strings.Join(faultsOf(t, tooLarge), " ") != "screenshot.contentBase64" {
		t.Errorf("a byte more: %v, %d %s", err, tooLarge.Status, tooLarge.Body)
	}
	body := captureBody(picture(largestScreenshot))
	body["pageText"] = strings.Repeat("x", 2<<20)
	tooLong, err := c.Do(t.Context(), "POST", at+"/capture", body)
	if err != nil || tooLong.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("more than 8 MiB: %v, %d %s", err, tooLong.Status, tooLong.Body)
	}
	// With as much text as there is room for, and a key.
	body["pageText"], body["includeFullText"], body["summarize"] = strings.Repeat("All of the text is here. ", 1<<15), true, true
	first, err := c.Do(t.Context(), "POST", at+"/capture", body, "Idempotency-Key", "k")
	if err != nil || first.Status != http.StatusCreated {
		t.Fatalf("with text: %v, %d %.200s", err, first.Status, first.Body)
	}
	again, err := c.Do(t.Context(), "POST", at+"/capture", body, "Idempotency-Key", "k")
	if err != nil || !bytes.Equal(again.Body, first.Body) || again.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("repeated: %v, %d", err, again.Status)
	}
	var deleted struct{ R2Objects int }
	if err := c.Decode(t.Context(), "DELETE", at, nil, http.StatusOK, &deleted); err != nil || deleted.R2Objects != 5 {
		t.Errorf("deleted with %d attachments, %v", deleted.R2Objects, err)
	}
}

// Whichever node is asked, the largest screenshot gets in and out unharmed, and
// other requests to the workspace are answered meanwhile.
func TestCluster_LargestScreenshot(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 2*time.Minute)
	defer cancel()
	f := newFleet(ctx, t, 3, "--shards", "2")
	o, err := f.members[0].Client("").onboardInsisting(ctx, "Captured", "captured")
	if err != nil {
		t.Fatal(err)
	}
	var others sync.WaitGroup
	done := make(chan struct{})
	var longest time.Duration // owned by the goroutine until it has ended
	others.Go(func() {
		c := f.members[1].Client(o.Token.Token)
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			default:
			}
			began := time.Now()
			err := c.Decode(ctx, "POST", "/workspaces/"+o.Workspace.ID+"/issues", map[string]any{"title": fmt.Sprint("Meanwhile ", n)}, http.StatusCreated, nil)
			if longest = max(longest, time.Since(began)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	content := picture(largestScreenshot)
	for _, m := range f.members {
		a, err := m.Client(o.Token.Token).capture(ctx, o.Workspace.ID, content)
		if err != nil {
			t.Errorf("by way of %s: %v", m.Name, err)
			continue
		}
		for _, m := range f.members {
			if err := m.Client(o.Token.Token).holds(ctx, a, content); err != nil {
				t.Errorf("by way of %s: %v", m.Name, err)
			}
		}
	}
	close(done)
	others.Wait()
	t.Logf("the slowest other request took %s", longest)
	for _, m := range f.members {
		if err := m.Terminate(ctx); err != nil {
			t.Error(err)
		}
		if err := Verify(ctx, f.Binary, m.Data); err != nil {
			t.Error(err)
		}
	}
}
