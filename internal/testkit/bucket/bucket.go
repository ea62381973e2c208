// Package bucket is a service with the interface of S3 for tests: one bucket in memory, which
// proves the signature of every request. Its requests run on the goroutines of net/http's test
// server, which ends with the test.
package bucket

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The name of the bucket, and the credentials and the region that the service accepts.
const (
	Name      = "bucket"
	AccessKey = "the-access-key"
	SecretKey = "the/secret+key-of-the-bucket"
	Session   = "the-session-token"
	Region    = "eu-test-1"
)

// Service is a running service.
type Service struct {
	URL string

	mu      sync.Mutex
	objects map[string]object
	uploads map[string]map[int][]byte
	parts   int // sent in all
	// fault answers a request in the place of the service, if it is set and returns true.
	fault func(w http.ResponseWriter, r *http.Request) bool
	asked map[string]int // requests, by method
}

type object struct {
	content []byte
	changed time.Time
}

// New starts a service with an empty bucket.
func New(t testing.TB) *Service {
	t.Helper()
	b := &Service{objects: map[string]object{}, uploads: map[string]map[int][]byte{}, asked: map[string]int{}}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.URL = server.URL
	return b
}

// Fail has fault answer requests: those for which it returns true get no other answer. Nil ends
// that.
func (b *Service) Fail(fault func(w http.ResponseWriter, r *http.Request) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = fault
}

// Asked returns how many requests of a method came.
func (b *Service) Asked(method string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked[method]
}

// Parts returns how many parts of objects came, and how many uploads in parts did not end.
func (b *Service) Parts() (parts, open int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.parts, len(b.uploads)
}

// Names returns the names of the objects that begin with a prefix.
func (b *Service) Names(prefix string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(b.objects)), func(name string) bool { return !strings.HasPrefix(name, prefix) })
}

// Edit changes the content of an object; nil removes it.
func (b *Service) Edit(name string, change func([]byte) []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.objects[name]
	if o.content = change(bytes.Clone(o.content)); o.content == nil {
		delete(b.objects, name)
		return
	}
	b.objects[name] = o
}

// Age makes all objects older.
func (b *Service) Age(by time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, o := range b.objects {
		o.changed = o.changed.Add(-by)
		b.objects[name] = o
	}
}

// ServeHTTP implements http.Handler.
func (b *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := signedBody(r)
	if err != nil {
		Refuse(w, http.StatusForbidden, "SignatureDoesNotMatch", err.Error())
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked[r.Method]++
	if b.fault != nil && b.fault(w, r) {
		return
	}
	name, ok := strings.CutPrefix(r.URL.Path, "/"+Name+"/")
	query := r.URL.Query()
	switch {
	case !ok:
		Refuse(w, http.StatusNotFound, "NoSuchBucket", "There is no such bucket.")
	case r.Method == http.MethodGet && name == "":
		b.list(w, query)
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		o, ok := b.objects[name]
		if !ok {
			Refuse(w, http.StatusNotFound, "NoSuchKey", "There is no such key.")
			return
		}
		if tag := r.Header.Get("If-Match"); tag != "" && tag != ETag(o.content) {
			Refuse(w, http.StatusPreconditionFailed, "PreconditionFailed", "The object is another one.")
			return
		}
		w.Header().Set("ETag", ETag(o.content))
		w.Header().Set("Last-Modified", o.changed.UTC().Format(http.TimeFormat))
		status, rest := http.StatusOK, o.content
		if from := From(r); from > 0 && from < len(rest) {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(rest)-1, len(rest)))
			status, rest = http.StatusPartialContent, rest[from:]
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(rest)))
		w.WriteHeader(status)
		if r.Method == http.MethodGet {
			_, _ = w.Write(rest)
		}
	case r.Method == http.MethodPost && query.Has("uploads"):
		id := strconv.Itoa(len(b.uploads) + 1)
		b.uploads[id] = map[int][]byte{}
		_, _ = fmt.Fprintf(w, `<InitiateMultipartUploadResult><Bucket>%s</Bucket><Key>%s</Key><UploadId>%s</UploadId></InitiateMultipartUploadResult>`, Name, name, id)
	case r.Method == http.MethodPost && query.Has("uploadId"):
		var whole []byte
		parts := b.uploads[query.Get("uploadId")]
		for n := 1; n <= len(parts); n++ {
			whole = append(whole, parts[n]...)
		}
		delete(b.uploads, query.Get("uploadId"))
		b.objects[name] = object{whole, time.Now()}
		_, _ = fmt.Fprintf(w, `<CompleteMultipartUploadResult><Bucket>%s</Bucket><Key>%s</Key><ETag>%s</ETag></CompleteMultipartUploadResult>`, Name, name, ETag(whole))
	case r.Method == http.MethodPut && query.Has("uploadId"):
		n, _ := strconv.Atoi(query.Get("partNumber"))
		b.uploads[query.Get("uploadId")][n] = body
		b.parts++
		w.Header().Set("ETag", ETag(body))
	case r.Method == http.MethodPut:
		b.objects[name] = object{body, time.Now()}
		w.Header().Set("ETag", ETag(body))
	case r.Method == http.MethodDelete && query.Has("uploadId"):
		delete(b.uploads, query.Get("uploadId"))
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodDelete:
		delete(b.objects, name)
		w.WriteHeader(http.StatusNoContent)
	default:
		Refuse(w, http.StatusMethodNotAllowed, "MethodNotAllowed", r.Method)
	}
}

// list answers in pages of three.
func (b *Service) list(w http.ResponseWriter, query url.Values) {
	type content struct {
		Key          string
		LastModified string
		Size         int
		ETag         string
	}
	type folder struct{ Prefix string }
	var page struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		Name, Prefix          string
		IsTruncated           bool
		NextContinuationToken string    `xml:",omitempty"`
		Contents              []content `xml:"Contents"`
		CommonPrefixes        []folder  `xml:"CommonPrefixes"`
	}
	page.Name, page.Prefix = Name, query.Get("prefix")
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(b.objects)) {
		rest, ok := strings.CutPrefix(name, page.Prefix)
		if !ok || name <= query.Get("continuation-token") {
			continue
		}
		if at := strings.Index(rest, "/"); at >= 0 && query.Get("delimiter") == "/" {
			if up := page.Prefix + rest[:at+1]; !seen[up] {
				seen[up] = true
				page.CommonPrefixes = append(page.CommonPrefixes, folder{up})
			}
			continue
		}
		if len(page.Contents) == 3 {
			page.IsTruncated, page.NextContinuationToken = true, page.Contents[2].Key
			break
		}
		o := b.objects[name]
		page.Contents = append(page.Contents, content{name, o.changed.UTC().Format("2006-01-02T15:04:05.000Z"), len(o.content), ETag(o.content)})
	}
	_ = xml.NewEncoder(w).Encode(page)
}

// ETag returns the entity tag of an object.
func ETag(content []byte) string { return fmt.Sprintf("%q", fmt.Sprintf("%x", md5.Sum(content))) }

// From returns the first byte that a request asks for, of those that ask for all behind it.
func From(r *http.Request) int {
	text, _ := strings.CutPrefix(r.Header.Get("Range"), "bytes=")
	from, _ := strconv.Atoi(strings.TrimSuffix(text, "-"))
	return from
}

// Cut answers with the object's content from the byte that the request asks for, and breaks off after
// a number of bytes.
func Cut(w http.ResponseWriter, r *http.Request, content []byte, after int) {
	from := From(r)
	w.Header().Set("ETag", ETag(content))
	w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
	w.Header().Set("Content-Length", strconv.Itoa(len(content)-from))
	if from > 0 {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(content)-1, len(content)))
		w.WriteHeader(http.StatusPartialContent)
	}
	_, _ = w.Write(content[from:min(from+after, len(content))])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// Refuse answers with an error of S3.
func Refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_ = xml.NewEncoder(w).Encode(struct {
		XMLName       xml.Name `xml:"Error"`
		Code, Message string
	}{Code: code, Message: message})
}

// signedBody returns the body of a request once its signature (AWS Signature Version 4) is proved,
// with that of each chunk.
func signedBody(r *http.Request) ([]byte, error) {
	var credential, signed, signature string
	for _, part := range strings.Split(strings.TrimPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 "), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "Credential":
			credential = value
		case "SignedHeaders":
			signed = value
		case "Signature":
			signature = value
		}
	}
	at := r.Header.Get("X-Amz-Date")
	if len(at) < 8 || r.Header.Get("X-Amz-Security-Token") != Session {
		return nil, errors.New("no date, or another session")
	}
	scope := at[:8] + "/" + Region + "/s3/aws4_request"
	if credential != AccessKey+"/"+scope {
		return nil, fmt.Errorf("the credential is %q", credential)
	}
	names := strings.Split(signed, ";")
	for _, must := range []string{"host", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"} {
		if !slices.Contains(names, must) {
			return nil, fmt.Errorf("%s is not signed", must)
		}
	}
	var headers strings.Builder
	for _, name := range names {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = strconv.FormatInt(r.ContentLength, 10)
		}
		_, _ = fmt.Fprintf(&headers, "%s:%s\n", name, strings.TrimSpace(value))
	}
	payload := r.Header.Get("X-Amz-Content-Sha256")
	query := strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20")
	canonical := strings.Join([]string{r.Method, r.URL.EscapedPath(), query, headers.String(), signed, payload}, "\n")
	key := []byte("AWS4" + SecretKey)
	for _, part := range strings.Split(scope, "/") {
		key = sign(key, part)
	}
	if due := hex.EncodeToString(sign(key, strings.Join([]string{"AWS4-HMAC-SHA256", at, scope, hexSum([]byte(canonical))}, "\n"))); signature != due {
		return nil, errors.New("the signature is wrong")
	}
	if payload == "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" {
		return signedChunks(r, key, at, scope, signature)
	}
	body, err := io.ReadAll(r.Body)
	// Requests without a body need not sign that there is none.
	if err == nil && hexSum(body) != payload && (payload != "UNSIGNED-PAYLOAD" || len(body) > 0) {
		err = fmt.Errorf("the body of %s %s is not the one that was signed, %s", r.Method, r.URL, payload)
	}
	return body, err
}

func signedChunks(r *http.Request, key []byte, at, scope, before string) ([]byte, error) {
	in := bufio.NewReader(r.Body)
	var body []byte
	for {
		head, err := in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		text, signature, _ := strings.Cut(strings.TrimSpace(head), ";chunk-signature=")
		size, err := strconv.ParseUint(text, 16, 32)
		chunk := make([]byte, size+2)
		if err == nil {
			_, err = io.ReadFull(in, chunk)
		}
		if err != nil {
			return nil, err
		}
		chunk = chunk[:size]
		due := hex.EncodeToString(sign(key, strings.Join([]string{"AWS4-HMAC-SHA256-PAYLOAD", at, scope, before, hexSum(nil), hexSum(chunk)}, "\n")))
		if signature != due {
			return nil, errors.New("the signature of a chunk is wrong")
		}
		if before = due; size == 0 {
			return body, nil
		}
		body = append(body, chunk...)
	}
}

func sign(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, text) // never fails
	return mac.Sum(nil)
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
