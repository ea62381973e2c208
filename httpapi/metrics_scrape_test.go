package httpapi

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// slowReader is a client that doesn't read its answer for now.
type slowReader struct {
	*httptest.ResponseRecorder
	deadline time.Time
	begun    chan<- struct{} // gets a value when the answer begins
	read     <-chan struct{} // closed when the client reads
}

func (r *slowReader) SetWriteDeadline(t time.Time) error {
	r.deadline = t
	return nil
}

func (r *slowReader) Write(b []byte) (int, error) {
	select {
	case r.begun <- struct{}{}:
	default:
	}
	<-r.read
	return r.ResponseRecorder.Write(b) //nolint:wrapcheck // the error of the recorder
}

func TestMetrics_FewScrapesAtATime(t *testing.T) {
	t.Parallel()
	metrics := setup(t).Metrics()
	get := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	begun, read, done := make(chan struct{}, scrapesAtATime), make(chan struct{}), make(chan *slowReader)
	for range scrapesAtATime {
		go func() {
			w := &slowReader{ResponseRecorder: httptest.NewRecorder(), begun: begun, read: read}
			metrics.ServeHTTP(w, get)
			done <- w
		}()
		<-begun
	}
	over := httptest.NewRecorder()
	metrics.ServeHTTP(over, get)
	if over.Code != http.StatusServiceUnavailable {
		t.Errorf("one scrape more than there may be: %d", over.Code)
	}
	close(read)
	for range scrapesAtATime {
		if w := <-done; w.Code != http.StatusOK || w.deadline.IsZero() {
			t.Errorf("status %d, deadline %v", w.Code, w.deadline)
		}
	}
	after := httptest.NewRecorder()
	metrics.ServeHTTP(after, get)
	if after.Code != http.StatusOK {
		t.Errorf("after the others: %d", after.Code)
	}
}
