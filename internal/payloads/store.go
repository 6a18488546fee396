package payloads

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// put stores data that is too large to be inline, and returns a reference.
func (e *Encoding) put(
	ctx context.Context, info perdure.PayloadInfo, key keyFunc, s *history.EncodedPayload, doc, data []byte,
) (history.Payload, error) {
	sum := sha256.Sum256(data)
	s.SHA256 = hex.EncodeToString(sum[:])
	s.Key = key(s.SHA256)
	failed := func(err error) error {
		return &perdure.PayloadError{Payload: info, Codec: s.Codec, Key: s.Key, Err: err}
	}
	if len(data) > provider.MaxStoredPayloadBytes {
		return nil, failed(perdure.NonRetryable(fmt.Errorf(
			"the encoded payload has %d bytes, which exceeds the limit of %d bytes",
			len(data), provider.MaxStoredPayloadBytes)))
	}
	if s.Codec != "" {
		digest := sha256.Sum256(doc)
		var err error
		if s.Digest, err = callEncode(ctx, e.codec, info, digest[:]); err != nil {
			return nil, failed(err)
		}
	}
	if err := e.store.PutPayload(ctx, s.Key, data); err != nil {
		return nil, failed(err)
	}
	e.cache.add(s.SHA256, data)
	return s.Payload(), nil
}

// Adopt copies a payload that the payload store holds for a message, or for another execution, so that the execution
// has its own copy. If the stored payload does not exist, Adopt returns p unchanged, and Decode reports the error.
func (e *Encoding) Adopt(
	ctx context.Context, info perdure.PayloadInfo, p history.Payload,
) (history.Payload, error) {
	from := p.StorageKey()
	if from == "" || provider.ExecutionOfPayload(from) == info.ExecutionID {
		return p, nil
	}
	s, _ := p.Encoded()
	if !e.HasStore() {
		return nil, &perdure.PayloadError{Payload: info, Codec: s.Codec, Key: s.Key, Err: errNoStore}
	}
	s.Key = provider.PayloadKey(info.ExecutionID, s.SHA256)
	err := e.store.CopyPayload(ctx, from, s.Key)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return p, nil
	case err != nil:
		return nil, &perdure.PayloadError{Payload: info, Codec: s.Codec, Key: from, Err: err}
	default:
		return s.Payload(), nil
	}
}

// Delete deletes keys of an execution that never began from the payload store. If it fails, perdure sweep deletes them
// later.
func (e *Encoding) Delete(ctx context.Context, keys ...string) error {
	if !e.HasStore() {
		return nil
	}
	for batch := range slices.Chunk(keys, provider.PayloadBatchSize) {
		if err := e.store.DeletePayloads(ctx, batch...); err != nil {
			return err
		}
	}
	return nil
}

// ReadStored returns and checks the data of a payload in the payload store. The data is encoded if a codec encoded it.
// The error is a *perdure.PayloadError.
func (e *Encoding) ReadStored(ctx context.Context, info perdure.PayloadInfo, p history.Payload) ([]byte, error) {
	s, _ := p.Encoded()
	err := errUnknownEncoding
	if s.Key != "" {
		var data []byte
		if data, err = e.read(ctx, &s); err == nil {
			return data, nil
		}
	}
	return nil, &perdure.PayloadError{Payload: info, Codec: s.Codec, Key: s.Key, Err: err}
}

// read returns the encoded data of a payload, from the payload store if necessary, and checks its hash.
func (e *Encoding) read(ctx context.Context, s *history.EncodedPayload) (data []byte, err error) {
	data = s.Data
	if s.Key != "" {
		if !e.HasStore() {
			return nil, errNoStore
		}
		var cached bool
		if data, cached = e.cache.get(s.SHA256); cached {
			return data, nil
		}
		data, err = e.store.GetPayload(ctx, s.Key)
		if errors.Is(err, provider.ErrNotFound) { // callers would interpret it as a missing instance
			return nil, perdure.ErrPayloadNotFound
		}
		if err != nil {
			return nil, err
		}
	}
	if err := s.Check(data); err != nil {
		return nil, fmt.Errorf("%w: %w", provider.ErrCorrupt, err)
	}
	if s.Key != "" {
		e.cache.add(s.SHA256, data)
	}
	return data, nil
}
