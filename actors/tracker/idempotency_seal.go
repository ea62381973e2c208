package tracker

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
)

// An answer with a secret is kept encrypted: AES-256-GCM under a key derived from the
// caller's credential and the idempotency key, neither of which is stored (Decision 6).
// Read access to the disk does not reveal the secret; a repeat of the request brings
// the key again.
const (
	sealNonceLen = 12
	sealKeyLen   = 32
	sealInfo     = "switchyard idempotent answer 1"
)

// SealKey returns the key that encrypts and decrypts the answer to a request with an
// idempotency key. A step on another node gets it instead of the credential.
func SealKey(req *Request) ([]byte, error) {
	if req.Seal != nil {
		return req.Seal, nil
	}
	// The length separates credential and key. For anonymous callers the idempotency key
	// alone is the secret: nobody looked at a credential that they sent along.
	credential := req.Credential
	if req.Caller.Token == "" {
		credential = ""
	}
	input := fmt.Appendf(nil, "%d:%s:%s", len(credential), credential, req.Idempotency.Key)
	return hkdf.Key(sha256.New, input, nil, sealInfo, sealKeyLen)
}

func answerCipher(req *Request) (cipher.AEAD, error) {
	key, err := SealKey(req)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// sealAnswer returns nonce and ciphertext. The key of the answer's row is
// authenticated, so that an answer can't be moved to another row.
func sealAnswer(req *Request, key answerKey, nonce, body []byte) ([]byte, error) {
	aead, err := answerCipher(req)
	if err != nil {
		return nil, err
	}
	return aead.Seal(nonce, nonce, body, key[:]), nil
}

func openAnswer(req *Request, key answerKey, sealed []byte) ([]byte, error) {
	if len(sealed) < sealNonceLen {
		return nil, errors.New("sealed answer is too short")
	}
	aead, err := answerCipher(req)
	if err != nil {
		return nil, err
	}
	return aead.Open(nil, sealed[:sealNonceLen], sealed[sealNonceLen:], key[:])
}
