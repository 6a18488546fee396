// Package vault encodes payloads before they are stored in histories, messages and records, and decodes them again. It
// uses the codec of a program and the payload store of a hub. For a program with neither, New returns nil, which leaves
// payloads unchanged.
package vault

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Vault encodes and decodes payloads. It is safe for concurrent use.
type Vault struct {
	codec perdure.Codec // nil: nothing is encoded
	known map[string]perdure.Codec
	store provider.PayloadStore // nil: payloads are kept inline
	cache *cache
}

// StoreOf returns the payload store of a provider or of a client's hub, or nil if there is none.
func StoreOf(hub any) provider.PayloadStore {
	if k, ok := hub.(provider.PayloadStoreProvider); ok {
		return k.Payloads()
	}
	return nil
}

// New returns the encoder and decoder of a program. The first codec, if it is not nil, encodes; all codecs decode.
// Payloads that are too large to be inline go to store, which may be nil. New returns nil if there are no codecs and no
// store.
func New(codecs []perdure.Codec, store provider.PayloadStore) (*Vault, error) {
	v := &Vault{known: map[string]perdure.Codec{}, store: store, cache: newCache()}
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
			return nil, fmt.Errorf("the ID of a codec must have 1 to %d letters, digits, dots, dashes and underscores, is %q",
				history.MaxCodecIDBytes, id)
		case v.known[id] != nil:
			return nil, fmt.Errorf("two codecs have the ID %q", id)
		}
		v.known[id] = c
		if i == 0 {
			v.codec = c
		}
	}
	if len(v.known) == 0 && store == nil {
		return nil, nil //nolint:nilnil // the vault of those who have none
	}
	return v, nil
}

// Stores reports whether there is a payload store.
func (v *Vault) Stores() bool { return v != nil && v.store != nil }

// Limit returns the size limit of a payload's document, in bytes.
func (v *Vault) Limit() int {
	if v.Stores() {
		return perdure.MaxLargePayloadBytes
	}
	return perdure.MaxPayloadBytes
}

// keyOf is where a payload with a hash is to lie in the store.
type keyOf func(hash string) string

// Seal returns a document of an execution in the form in which it is stored and sent. It encodes the document if there
// is a codec, and moves it to the payload store if it is then too large to be inline.
func (v *Vault) Seal(ctx context.Context, about perdure.PayloadInfo, doc json.RawMessage) (history.Payload, error) {
	return v.seal(ctx, about, ownKey(about.ExecutionID), doc)
}

// SealMail is like Seal for a payload of a message whose receiver has no known execution. kind and id identify the
// message: the message has the same id if it is sent again.
func (v *Vault) SealMail(ctx context.Context, about perdure.PayloadInfo, kind provider.MessageKind, id string, p history.Payload) (history.Payload, error) {
	doc, plain := p.Document()
	if v == nil || len(p) == 0 || !plain {
		return p, nil
	}
	return v.seal(ctx, about, func(hash string) string { return provider.MessagePayloadKey(kind, id, hash) }, doc)
}

func ownKey(executionID string) keyOf {
	return func(hash string) string { return provider.PayloadKey(executionID, hash) }
}

func (v *Vault) seal(ctx context.Context, about perdure.PayloadInfo, key keyOf, doc json.RawMessage) (history.Payload, error) {
	if v == nil || v.codec == nil && len(doc) <= perdure.MaxPayloadBytes {
		return history.NewInlinePayload(doc), nil
	}
	doc = history.CompactJSON(doc)
	s, data, err := v.encode(ctx, about, doc)
	if err != nil {
		return nil, err
	}
	if v.store == nil || about.Kind == perdure.PayloadErrorDetails || !tooLarge(about.Kind, &s, data) { // details are small, and copied nowhere with their failure
		if s.Codec == "" {
			return history.NewInlinePayload(doc), nil
		}
		s.Data = data
		return s.Payload(), nil
	}
	return v.put(ctx, about, key, &s, doc, data)
}

// encode makes what is to be stored of a document.
func (v *Vault) encode(ctx context.Context, about perdure.PayloadInfo, doc json.RawMessage) (s history.EncodedPayload, data []byte, err error) {
	s.Bytes = int64(len(doc))
	if v.codec == nil {
		return s, doc, nil
	}
	data, err = encoded(ctx, v.codec, about, doc)
	if err != nil {
		return s, nil, &perdure.PayloadError{Payload: about, Codec: v.codec.ID(), Err: err}
	}
	if data == nil {
		return s, doc, nil
	}
	s.Codec = v.codec.ID()
	return s, data, nil
}

// mostDetails is how much of the details of a heartbeat is kept inline: an item has 400 KB. Each takes the place of the one before there, where a store would keep
// them all until their execution goes, one a second.
const mostDetails = 300 << 10

// tooLarge reports whether what is to be stored is too large to be kept inline, where encoded data is base64.
func tooLarge(kind perdure.PayloadKind, s *history.EncodedPayload, data []byte) bool {
	most := perdure.MaxPayloadBytes
	if kind == perdure.PayloadHeartbeatDetails {
		most = mostDetails
	}
	if s.Codec == "" {
		return len(data) > most
	}
	return base64.StdEncoding.EncodedLen(len(data)) > most
}

// put stores what is too large to be kept inline.
func (v *Vault) put(ctx context.Context, about perdure.PayloadInfo, key keyOf, s *history.EncodedPayload, doc json.RawMessage, data []byte) (history.Payload, error) {
	sum := sha256.Sum256(data)
	s.SHA256 = hex.EncodeToString(sum[:])
	s.Key = key(s.SHA256)
	problem := func(err error) error {
		return &perdure.PayloadError{Payload: about, Codec: s.Codec, Key: s.Key, Err: err}
	}
	if len(data) > provider.MaxStoredPayloadBytes {
		return nil, problem(perdure.NonRetryable(fmt.Errorf("the encoded payload has %d bytes, which exceeds the limit of %d bytes",
			len(data), provider.MaxStoredPayloadBytes)))
	}
	if s.Codec != "" {
		digest := sha256.Sum256(doc)
		var err error
		if s.Digest, err = encoded(ctx, v.codec, about, digest[:]); err != nil {
			return nil, problem(err)
		}
	}
	if err := v.store.PutPayload(ctx, s.Key, data); err != nil {
		return nil, problem(err)
	}
	v.cache.add(s.SHA256, data)
	return s.Payload(), nil
}

// SealPayload is like Seal for a payload. It leaves a payload unchanged that is already encoded or refers to a place in
// the history.
func (v *Vault) SealPayload(ctx context.Context, about perdure.PayloadInfo, p history.Payload) (history.Payload, error) {
	if v == nil || len(p) == 0 {
		return p, nil
	}
	doc, plain := p.Document()
	if !plain {
		return p, nil
	}
	return v.Seal(ctx, about, doc)
}

// Own copies a payload that the payload store holds for a message, or for another execution, so that the execution has
// its own copy. If the stored payload is gone, Own returns p unchanged, and Open reports the error.
func (v *Vault) Own(ctx context.Context, about perdure.PayloadInfo, p history.Payload) (history.Payload, error) {
	from := p.StorageKey()
	if from == "" || provider.ExecutionOfPayload(from) == about.ExecutionID {
		return p, nil
	}
	s, _ := p.Encoded()
	if !v.Stores() {
		return nil, &perdure.PayloadError{Payload: about, Codec: s.Codec, Key: s.Key, Err: errNoStore}
	}
	s.Key = provider.PayloadKey(about.ExecutionID, s.SHA256)
	err := v.store.CopyPayload(ctx, from, s.Key)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return p, nil
	case err != nil:
		return nil, &perdure.PayloadError{Payload: about, Codec: s.Codec, Key: from, Err: err}
	default:
		return s.Payload(), nil
	}
}

// Forget deletes the given keys of an execution that never began from the payload store. If it fails, the sweeper
// deletes them later.
func (v *Vault) Forget(ctx context.Context, keys ...string) error {
	if !v.Stores() {
		return nil
	}
	for some := range slices.Chunk(keys, provider.PayloadBatchSize) {
		if err := v.store.DeletePayloads(ctx, some...); err != nil {
			return err
		}
	}
	return nil
}

// Open returns the document of a payload that is inline or encoded.
func (v *Vault) Open(ctx context.Context, about perdure.PayloadInfo, p history.Payload) (json.RawMessage, error) {
	if doc, plain := p.Document(); plain {
		return doc, nil
	}
	s, ok := p.Encoded()
	if !ok {
		return nil, &perdure.PayloadError{Payload: about, Err: errUnknownSeal}
	}
	return v.open(ctx, about, &s)
}

// errUnknownSeal is about a payload that is sealed in a way which this release does not know.
var errUnknownSeal = errors.New("this release does not support the encoding of the payload")

// errNoStore is about a payload in a store that this program does not have.
var errNoStore = errors.New("the payload is in the payload store, but this program has no payload store")

func (v *Vault) open(ctx context.Context, about perdure.PayloadInfo, s *history.EncodedPayload) (json.RawMessage, error) {
	problem := func(err error) error {
		return &perdure.PayloadError{Payload: about, Codec: s.Codec, Key: s.Key, Err: err}
	}
	if s.Codec != "" && (v == nil || v.known[s.Codec] == nil) {
		return nil, problem(perdure.ErrUnknownCodec)
	}
	data, err := v.stored(ctx, s)
	if err != nil {
		return nil, problem(err)
	}
	doc := data
	if s.Codec != "" {
		if doc, err = decoded(ctx, v.known[s.Codec], about, data); err != nil {
			return nil, problem(err)
		}
	}
	if int64(len(doc)) != s.Bytes || !json.Valid(doc) {
		return nil, problem(fmt.Errorf("%w: the payload decodes to %d bytes, but the encoded JSON document had %d bytes",
			provider.ErrCorrupt, len(doc), s.Bytes))
	}
	return doc, nil
}

// Stored returns the data of a payload as the payload store holds it: encoded, if a codec encoded it. Stored checks the
// data. The error is a *perdure.PayloadError.
func (v *Vault) Stored(ctx context.Context, about perdure.PayloadInfo, p history.Payload) ([]byte, error) {
	s, _ := p.Encoded()
	err := errUnknownSeal
	if s.Key != "" {
		var data []byte
		if data, err = v.stored(ctx, &s); err == nil {
			return data, nil
		}
	}
	return nil, &perdure.PayloadError{Payload: about, Codec: s.Codec, Key: s.Key, Err: err}
}

// stored returns what is stored of a payload, and checks that it is that.
func (v *Vault) stored(ctx context.Context, s *history.EncodedPayload) (data []byte, err error) {
	data = s.Data
	if s.Key != "" {
		if !v.Stores() {
			return nil, errNoStore
		}
		var cached bool
		if data, cached = v.cache.get(s.SHA256); cached {
			return data, nil
		}
		data, err = v.store.GetPayload(ctx, s.Key)
		if errors.Is(err, provider.ErrNotFound) { // not the instance
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
		v.cache.add(s.SHA256, data)
	}
	return data, nil
}

// Same reports whether doc is the document of an encoded payload. It compares payloads in the payload store by digest,
// without fetching them.
func (v *Vault) Same(ctx context.Context, about perdure.PayloadInfo, p history.Payload, doc json.RawMessage) (bool, error) {
	doc = history.CompactJSON(doc)
	s, ok := p.Encoded()
	sum := sha256.Sum256(doc)
	switch {
	case ok && s.Key != "" && s.Codec == "":
		return s.SHA256 == hex.EncodeToString(sum[:]), nil
	case ok && s.Key != "" && v != nil && v.known[s.Codec] != nil:
		digest, err := decoded(ctx, v.known[s.Codec], about, s.Digest)
		if err != nil {
			return false, &perdure.PayloadError{Payload: about, Codec: s.Codec, Key: s.Key, Err: err}
		}
		return bytes.Equal(digest, sum[:]), nil
	}
	stored, err := v.Open(ctx, about, p)
	return err == nil && bytes.Equal(stored, doc), err
}

// IsFinal reports whether an error of this package is permanent: the codec is unknown, panics or marks the error as not
// retryable, or the payload is missing or corrupt. Any other error may be an outage.
func IsFinal(err error) bool {
	if _, ok := errors.AsType[*perdure.PayloadError](err); !ok {
		return false
	}
	if IsOfThisBuild(err) || errors.Is(err, perdure.ErrPayloadNotFound) || errors.Is(err, provider.ErrCorrupt) {
		return true
	}
	marked, ok := errors.AsType[interface {
		error
		NonRetryable() bool
	}](err)
	return ok && marked.NonRetryable()
}

// IsOfThisBuild reports whether another build may be able to process the payload: this program lacks the codec, the
// payload store or the encoding, or its codec panicked.
func IsOfThisBuild(err error) bool {
	return errors.Is(err, perdure.ErrUnknownCodec) || errors.Is(err, errNoStore) || errors.Is(err, errUnknownSeal) || errors.Is(err, errPanicked)
}
