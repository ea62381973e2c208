package tracker

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"switchyard/storage"
)

// idempotencyLife is how long an answer is kept for its key (Decision 6).
const idempotencyLife = 24 * time.Hour

// answerKey is the key of an answer's row: SHA-256 over the caller's token and the
// idempotency key.
type answerKey [sha256.Size]byte

func newAnswerKey(token, key string) answerKey {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d:%s:%s", len(token), token, key)
	return answerKey(h.Sum(nil))
}

// answer is the stored part of a reply. Layout, version 1: version, outcome, sealed (1
// byte each), time in milliseconds (8), fingerprint (32), length of the ETag (1), ETag,
// body. Version 2 has an eventPart in front of the body. Version 3 has a list of answerPart there.
type answer struct {
	outcome     Outcome
	sealed      bool
	at          time.Time
	fingerprint [32]byte
	etag        string
	event       eventPart
	parts       []answerPart // instead of event, for several events
	body        []byte       // the rest, without the parts of events
}

const (
	answerFormat    = 1
	answerWithEvent = 2
	answerWithParts = 3
	answerHeaderLen = 3 + 8 + 32 + 1
	maxETag         = 255
)

func (a *answer) append(b []byte) []byte {
	var sealed byte
	if a.sealed {
		sealed = 1
	}
	format := byte(answerFormat)
	switch {
	case len(a.parts) > 0:
		format = answerWithParts
	case a.event.sequence > 0:
		format = answerWithEvent
	}
	b = append(b, format, byte(a.outcome), sealed)
	b = binary.BigEndian.AppendUint64(b, uint64(a.at.UnixMilli()))
	b = append(append(b, a.fingerprint[:]...), byte(len(a.etag)))
	b = append(b, a.etag...)
	switch format {
	case answerWithEvent:
		b = a.event.append(b)
	case answerWithParts:
		b = appendParts(b, a.parts)
	}
	return append(b, a.body...)
}

func parseAnswer(b []byte) (a answer, err error) {
	if len(b) < answerHeaderLen || b[0] < answerFormat || b[0] > answerWithParts || len(b) < answerHeaderLen+int(b[answerHeaderLen-1]) {
		return a, fmt.Errorf("%w: answer of %d bytes", storage.ErrFormat, len(b))
	}
	a.outcome, a.sealed = Outcome(b[1]), b[2] == 1
	a.at = time.UnixMilli(int64(binary.BigEndian.Uint64(b[3:]))).UTC()
	copy(a.fingerprint[:], b[11:])
	end := answerHeaderLen + int(b[answerHeaderLen-1])
	a.etag, a.body = string(b[answerHeaderLen:end]), b[end:]
	switch b[0] {
	case answerWithParts:
		a.parts, a.body, err = parseParts(a.body)
	case answerWithEvent:
		if len(a.body) < eventPartLen {
			return a, fmt.Errorf("%w: answer of %d bytes", storage.ErrFormat, len(b))
		}
		a.event, a.body = cutEventPart(a.body)
	}
	return a, err
}

// errKeyReused is the error for a key that was used with another request.
func errKeyReused() *Error {
	return &Error{
		Code:    CodeIdempotencyKeyReused,
		Message: "This Idempotency-Key was used with another request.",
		Hint:    "Use a new key for a new request, and repeat a request unchanged.",
	}
}

// errOtherCredential is the error for a key whose answer is sealed with an earlier
// credential of the caller.
func errOtherCredential() *Error {
	return Conflict("The request was answered with a secret, to an earlier credential of the caller.", "The resource that it made exists. Delete that and repeat the request with a new Idempotency-Key if its secret is lost.")
}

// replay returns the answer to an earlier request with the same key, or false if there
// is none.
func (tx *Tx) replay(op *Op, req *Request) (Reply, bool, error) {
	if req.Idempotency == nil {
		return Reply{}, false, nil
	}
	key := newAnswerKey(req.Caller.Token, req.Idempotency.Key)
	a, err := tx.liveAnswer(key, req.Idempotency.Fingerprint)
	if err != nil || a == nil {
		return Reply{}, false, err
	}
	body, err := tx.wholeBody(a)
	if err != nil {
		return Reply{}, false, fmt.Errorf("%s: %w", op.Name, err)
	}
	if a.sealed {
		if body, err = openAnswer(req, key, body); err != nil {
			if req.Caller.Expires.IsZero() && !req.Caller.Root {
				return Reply{}, false, fmt.Errorf("%s: open a sealed answer: %w", op.Name, err)
			}
			return Reply{}, false, errOtherCredential()
		}
	}
	return Reply{Outcome: a.outcome, ETag: a.etag, Body: body, Replayed: true}, true, nil
}

// liveAnswer returns the unexpired answer for a key, or nil. It returns
// IDEMPOTENCY_KEY_REUSED if the fingerprint is another.
func (v *View) liveAnswer(key answerKey, fingerprint [32]byte) (*answer, error) {
	a, err := v.answer(key)
	if err != nil || a == nil || v.now.Sub(a.at) >= idempotencyLife {
		return nil, err
	}
	if a.fingerprint != fingerprint {
		return nil, errKeyReused()
	}
	return a, nil
}

// remember stores the answer of a command for its key, in the command's own batch.
func (tx *Tx) remember(op *Op, req *Request, reply Reply) error {
	if req.Idempotency == nil {
		return nil
	}
	if len(reply.ETag) > maxETag {
		return fmt.Errorf("%s: ETag of %d bytes", op.Name, len(reply.ETag))
	}
	key := newAnswerKey(req.Caller.Token, req.Idempotency.Key)
	a := answer{outcome: reply.Outcome, at: tx.now, fingerprint: req.Idempotency.Fingerprint, etag: reply.ETag, body: reply.Body}
	switch {
	case op.Secret:
		nonce := make([]byte, sealNonceLen)
		if err := tx.Secret(nonce); err != nil {
			return fmt.Errorf("%s: seal an answer: %w", op.Name, err)
		}
		sealed, err := sealAnswer(req, key, nonce, reply.Body)
		if err != nil {
			return fmt.Errorf("%s: seal an answer: %w", op.Name, err)
		}
		a.sealed, a.body = true, sealed
	case len(reply.parts) > 0:
		a.parts, a.body = cutParts(reply.Body, reply.parts)
	default:
		a.event, a.body = tx.buffer.shorten(reply.Body)
	}
	return tx.setAnswer(key, &a)
}

func (v *View) answer(key answerKey) (*answer, error) {
	stored, err := v.Value(idempotencyTable, key[:], nil)
	if err != nil || stored == nil {
		return nil, err
	}
	a, err := parseAnswer(stored)
	if err != nil {
		return nil, err
	}
	return &a, nil
}

// setAnswer writes an answer and its entry by age, and replaces an expired answer.
func (tx *Tx) setAnswer(key answerKey, a *answer) error {
	old, err := tx.answer(key)
	if err != nil {
		return err
	}
	w := tx.Writer()
	write := w.AddValue
	if old != nil {
		write = w.SetValue
		if err := w.RemoveValue(idempotencyByAge, ageKey(old.at, key), 0); err != nil {
			return err
		}
	}
	if err := write(idempotencyTable, key[:], a.append(nil)); err != nil {
		return err
	}
	if err := w.AddValue(idempotencyByAge, ageKey(a.at, key), nil); err != nil {
		return err
	}
	return tx.setSweep(sweepAnswers, a.at.Add(idempotencyLife))
}

func ageKey(at time.Time, key answerKey) storage.Key {
	return append(storage.Key(nil).U64(uint64(at.UnixMilli())), key[:]...)
}
