package bench

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"
)

// connection speaks as much HTTP/1.1 as the load needs, over one kept-alive
// connection: it writes requests that are ready as they are and looks only for
// the status and the length of the answer. The generator shares the machine with
// the server, so what it does not do, the server can. Owned by one goroutine.
type connection struct {
	addr    string
	c       net.Conn
	buf     []byte
	head    int       // length of the last answer's head, which begins buf
	renewed time.Time // when the deadline was last moved
}

const (
	// answerWithin is how long an answer may take; a node answers within 10 s.
	answerWithin = 15 * time.Second
	// largestAnswer bounds what is read of one, in bytes.
	largestAnswer = 8 << 20
)

// dialer makes connections to a base URL.
func dialer(base string) (func() doer, string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, "", fmt.Errorf("bench: %w", err)
	}
	if u.Scheme != "http" || u.Host == "" || (u.Path != "" && u.Path != "/") {
		return nil, "", fmt.Errorf("bench: %q is not the http://host:port of a node", base)
	}
	addr := u.Host
	if u.Port() == "" {
		addr = net.JoinHostPort(u.Hostname(), "80")
	}
	return func() doer { return &connection{addr: addr, buf: make([]byte, 16<<10)} }, u.Host, nil
}

// do sends a request and reads its answer. After an error the next call dials
// anew.
func (c *connection) do(request []byte) (int, []byte, error) {
	now := time.Now()
	if c.c == nil {
		nc, err := net.DialTimeout("tcp", c.addr, 5*time.Second)
		if err != nil {
			return 0, nil, err
		}
		c.c, c.renewed = nc, time.Time{}
	}
	if now.Sub(c.renewed) > time.Second { // moving it costs a timer each time
		if err := c.c.SetDeadline(now.Add(answerWithin)); err != nil {
			return 0, nil, c.fail(err)
		}
		c.renewed = now
	}
	if _, err := c.c.Write(request); err != nil {
		return 0, nil, c.fail(err)
	}
	status, body, err := c.answer()
	if err != nil {
		return 0, nil, c.fail(err)
	}
	return status, body, nil
}

func (c *connection) answer() (int, []byte, error) {
	have, head := 0, 0
	for head == 0 {
		n, err := c.c.Read(c.buf[have:])
		if err != nil {
			return 0, nil, err
		}
		from := max(0, have-3)
		have += n
		if i := bytes.Index(c.buf[from:have], []byte("\r\n\r\n")); i >= 0 {
			head = from + i + 4
		} else if have == len(c.buf) {
			return 0, nil, errors.New("an answer with a head too long")
		}
	}
	status, length, err := parseHead(c.buf[:head])
	if err != nil {
		return 0, nil, err
	}
	c.head = head
	whole := head + length
	if whole > len(c.buf) {
		c.buf = append(make([]byte, 0, whole), c.buf[:have]...)[:whole]
	}
	for have < whole {
		n, err := c.c.Read(c.buf[have:whole])
		if err != nil {
			return 0, nil, err
		}
		have += n
	}
	if have > whole {
		return 0, nil, errors.New("an answer with more than its length says")
	}
	return status, c.buf[head:whole], nil
}

// parseHead reads the status and the length of the body.
func parseHead(head []byte) (status, length int, err error) {
	if len(head) < 12 || !bytes.HasPrefix(head, []byte("HTTP/1.")) {
		return 0, 0, fmt.Errorf("not an HTTP answer: %.40q", head)
	}
	if status, err = strconv.Atoi(string(head[9:12])); err != nil {
		return 0, 0, fmt.Errorf("not an HTTP answer: %.40q", head)
	}
	value, ok := headValue(head, "Content-Length: ")
	if !ok {
		if status == 204 || status == 304 {
			return status, 0, nil
		}
		return 0, 0, fmt.Errorf("an answer %d without a length", status)
	}
	if length, err = strconv.Atoi(string(value)); err != nil || length < 0 || length > largestAnswer {
		return 0, 0, fmt.Errorf("an answer with the length %.40q", value)
	}
	return status, length, nil
}

// headValue finds a header by its name and ": ", first as it is usually written.
func headValue(head []byte, name string) ([]byte, bool) {
	i := bytes.Index(head, []byte(name))
	if i < 0 {
		if i = bytes.Index(bytes.ToLower(head), bytes.ToLower([]byte(name))); i < 0 {
			return nil, false
		}
	}
	value := head[i+len(name):]
	end := bytes.IndexByte(value, '\r')
	if end < 0 {
		return nil, false
	}
	return value[:end], true
}

func (c *connection) fail(err error) error {
	c.close()
	return err
}

func (c *connection) close() {
	if c.c != nil {
		_ = c.c.Close()
		c.c = nil
	}
}

// request builds one from its parts; body may be empty.
func request(method, host, path, token, body string) []byte {
	return appendRequest(nil, method, host, path, token, []byte(body))
}

func appendRequest(b []byte, method, host, path, token string, body []byte) []byte {
	b = append(append(append(b, method...), ' '), path...)
	b = append(append(append(b, " HTTP/1.1\r\nHost: "...), host...), "\r\n"...)
	if token != "" {
		b = append(append(append(b, "Authorization: Bearer "...), token...), "\r\n"...)
	}
	if len(body) > 0 {
		b = strconv.AppendInt(append(b, "Content-Type: application/json\r\nContent-Length: "...), int64(len(body)), 10)
		b = append(b, "\r\n"...)
	}
	return append(append(b, "\r\n"...), body...)
}
