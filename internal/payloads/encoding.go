// Package payloads encodes payloads before they are stored in histories, messages and records, and decodes them. It
// uses the codecs of a program and the payload store of a hub. For a program with neither, New returns nil, which
// leaves payloads unchanged.
package payloads

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/unwrap"
	"github.com/perdure/perdure/provider"
)

// Encoding encodes and decodes payloads. It is safe for concurrent use. A nil Encoding leaves payloads unchanged.
type Encoding struct {
	codec  perdure.Codec // nil if payloads are not encoded
	codecs map[string]perdure.Codec
	store  provider.PayloadStore // nil if payloads are kept inline
	cache  *cache
}

// StoreOf returns the payload store of a provider or of a client's backend, which may be wrapped. It returns nil if
// there is none.
func StoreOf[V any](hub V) provider.PayloadStore {
	if p, ok := unwrap.As[provider.PayloadStoreProvider](hub); ok {
		return p.Payloads()
	}
	return nil
}

// New returns the Encoding of a program. The first codec, if it is not nil, encodes; all codecs decode. Payloads that
// are too large to be inline go to store, which may be nil. New returns nil if there are no codecs and no store.
func New(codecs []perdure.Codec, store provider.PayloadStore) (*Encoding, error) {
	e := &Encoding{codecs: map[string]perdure.Codec{}, store: store, cache: newCache()}
	for i, c := range codecs {
		if c == nil {
			if i > 0 {
				return nil, errors.New("a codec for decoding is nil")
			}
			continue
		}
		id := c.ID()
		switch {
		case !history.IsCodecID(id):
			return nil, fmt.Errorf("the ID of a codec must have 1 to %d letters, digits, dots, dashes and "+
				"underscores, is %q", history.MaxCodecIDBytes, id)
		case e.codecs[id] != nil:
			return nil, fmt.Errorf("two codecs have the ID %q", id)
		}
		e.codecs[id] = c
		if i == 0 {
			e.codec = c
		}
	}
	if len(e.codecs) == 0 && store == nil {
		return nil, nil //nolint:nilnil // a nil Encoding is valid
	}
	return e, nil
}

// HasStore reports whether there is a payload store.
func (e *Encoding) HasStore() bool { return e != nil && e.store != nil }

// Limit returns the size limit of a payload's document, in bytes.
func (e *Encoding) Limit() int {
	if e.HasStore() {
		return perdure.MaxLargePayloadBytes
	}
	return perdure.MaxPayloadBytes
}

// keyFunc returns the key in the payload store for data with a hash.
type keyFunc func(hash string) string

// Encode returns a document of an execution in the form in which it is stored and sent. It encodes the document if
// there is a codec, and moves it to the payload store if it is then too large to be inline.
func (e *Encoding) Encode(
	ctx context.Context, info perdure.PayloadInfo, doc json.RawMessage,
) (history.Payload, error) {
	key := func(hash string) string { return provider.PayloadKey(info.ExecutionID, hash) }
	return e.encodeTo(ctx, info, key, doc)
}

// EncodePayload is like Encode for a payload. It does not change a payload that is already encoded or refers to an
// event of the history.
func (e *Encoding) EncodePayload(
	ctx context.Context, info perdure.PayloadInfo, p history.Payload,
) (history.Payload, error) {
	if e == nil || len(p) == 0 {
		return p, nil
	}
	doc, inline := p.Document()
	if !inline {
		return p, nil
	}
	return e.Encode(ctx, info, doc)
}

// EncodeMessage is like EncodePayload for a payload of a message whose receiver has no known execution. kind and id
// identify the message. The id stays the same if the message is resent.
func (e *Encoding) EncodeMessage(
	ctx context.Context, info perdure.PayloadInfo, kind provider.MessageKind, id string, p history.Payload,
) (history.Payload, error) {
	doc, inline := p.Document()
	if e == nil || len(p) == 0 || !inline {
		return p, nil
	}
	key := func(hash string) string { return provider.MessagePayloadKey(kind, id, hash) }
	return e.encodeTo(ctx, info, key, doc)
}

func (e *Encoding) encodeTo(
	ctx context.Context, info perdure.PayloadInfo, key keyFunc, doc json.RawMessage,
) (history.Payload, error) {
	if e == nil || e.codec == nil && len(doc) <= perdure.MaxPayloadBytes {
		return history.NewInlinePayload(doc), nil
	}
	doc = history.CompactJSON(doc)
	s, data, err := e.applyCodec(ctx, info, doc)
	if err != nil {
		return nil, err
	}
	// error details are small, and failures are copied without their stored payloads
	inline := e.store == nil || info.Kind == perdure.PayloadErrorDetails || !isTooLarge(info.Kind, &s, data)
	switch {
	case !inline:
		return e.put(ctx, info, key, &s, doc, data)
	case s.Codec == "":
		return history.NewInlinePayload(doc), nil
	default:
		s.Data = data
		return s.Payload(), nil
	}
}

// applyCodec returns the encoded data of a document. The codec is empty if it left the document unchanged.
func (e *Encoding) applyCodec(
	ctx context.Context, info perdure.PayloadInfo, doc json.RawMessage,
) (s history.EncodedPayload, data []byte, err error) {
	s.Bytes = int64(len(doc))
	if e.codec == nil {
		return s, doc, nil
	}
	data, err = callEncode(ctx, e.codec, info, doc)
	if err != nil {
		return s, nil, &perdure.PayloadError{Payload: info, Codec: e.codec.ID(), Err: err}
	}
	if data == nil {
		return s, doc, nil
	}
	s.Codec = e.codec.ID()
	return s, data, nil
}

// maxInlineDetails is the size limit of inline heartbeat details, because an item has 400 KB. Inline details replace
// the previous ones, while the payload store would keep all of them until the execution is deleted.
const maxInlineDetails = 300 << 10

// isTooLarge reports whether data is too large to be inline. Encoded data is inline in base64.
func isTooLarge(kind perdure.PayloadKind, s *history.EncodedPayload, data []byte) bool {
	limit := perdure.MaxPayloadBytes
	if kind == perdure.PayloadHeartbeatDetails {
		limit = maxInlineDetails
	}
	if s.Codec == "" {
		return len(data) > limit
	}
	return base64.StdEncoding.EncodedLen(len(data)) > limit
}

// Decode returns the document of a payload that is inline or encoded.
func (e *Encoding) Decode(
	ctx context.Context, info perdure.PayloadInfo, p history.Payload,
) (json.RawMessage, error) {
	if doc, inline := p.Document(); inline {
		return doc, nil
	}
	s, ok := p.Encoded()
	if !ok {
		return nil, &perdure.PayloadError{Payload: info, Err: errUnknownEncoding}
	}
	failed := func(err error) error {
		return &perdure.PayloadError{Payload: info, Codec: s.Codec, Key: s.Key, Err: err}
	}
	if s.Codec != "" && (e == nil || e.codecs[s.Codec] == nil) {
		return nil, failed(perdure.ErrUnknownCodec)
	}
	data, err := e.read(ctx, &s)
	if err != nil {
		return nil, failed(err)
	}
	doc := data
	if s.Codec != "" {
		if doc, err = callDecode(ctx, e.codecs[s.Codec], info, data); err != nil {
			return nil, failed(err)
		}
	}
	if int64(len(doc)) != s.Bytes || !json.Valid(doc) {
		return nil, failed(fmt.Errorf("%w: the payload decodes to %d bytes, but the encoded JSON document had %d bytes",
			provider.ErrCorrupt, len(doc), s.Bytes))
	}
	return doc, nil
}

// Same reports whether doc is the document of an encoded payload. It compares payloads in the payload store by digest,
// without reading them.
func (e *Encoding) Same(
	ctx context.Context, info perdure.PayloadInfo, p history.Payload, doc json.RawMessage,
) (bool, error) {
	doc = history.CompactJSON(doc)
	s, ok := p.Encoded()
	sum := sha256.Sum256(doc)
	switch {
	case ok && s.Key != "" && s.Codec == "":
		return s.SHA256 == hex.EncodeToString(sum[:]), nil
	case ok && s.Key != "" && e != nil && e.codecs[s.Codec] != nil:
		digest, err := callDecode(ctx, e.codecs[s.Codec], info, s.Digest)
		if err != nil {
			return false, &perdure.PayloadError{Payload: info, Codec: s.Codec, Key: s.Key, Err: err}
		}
		return bytes.Equal(digest, sum[:]), nil
	}
	stored, err := e.Decode(ctx, info, p)
	return err == nil && bytes.Equal(stored, doc), err
}
