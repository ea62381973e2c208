package tracker

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
)

// An answer that carries a secret is kept sealed: AES-256-GCM under a key derived
// from the caller's credential and the idempotency key, neither of which is
// stored (Decision 6). Whoever reads the disk learns nothing; whoever repeats the
// request brings what opens it.
const (
	sealNonceLen = 12
	sealKeyLen   = 32
	sealInfo     = "switchyard idempotent answer 1"
)

// SealKey is what seals and opens the answer to a request that has an idempotency
// key. It goes with a step to another node, so that the credential need not.
func SealKey(req *Request) ([]byte, error) {
	if req.Seal != nil {
		return req.Seal, nil
	}
	// The length keeps credential and key apart. The anonymous have no credential;
	// their key alone is the secret.
	input := fmt.Appendf(nil, "%d:%s:%s", len(req.Credential), req.Credential, req.Idempotency.Key)
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

// sealAnswer gives nonce and ciphertext; the record's name is bound to them, so
// that one record's answer can't pass for another's.
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
