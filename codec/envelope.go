package codec

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure"
)

// KeyProvider generates and unwraps data keys. It must be safe for concurrent use. The module codec/kmskeys implements
// it with AWS KMS.
type KeyProvider interface {
	// GenerateDataKey returns a new 32-byte key for AES-256, and the same key in wrapped form. The wrapped key has at
	// most 65,535 bytes.
	GenerateDataKey(ctx context.Context) (key, wrapped []byte, err error)
	// UnwrapDataKey decrypts a wrapped key. If the key can never be unwrapped, the error must be marked with
	// perdure.NonRetryable.
	UnwrapDataKey(ctx context.Context, wrapped []byte) (key []byte, err error)
}

const (
	envelopeVersion = 1
	// keyUses and keyAge are the maximum number of uses and the maximum age of a data key for encoding. Random nonces
	// of 96 bits allow 2^32 uses of a key (NIST SP 800-38D, 8.3).
	keyUses = 1 << 20
	keyAge  = time.Hour
	// keysKnown is the maximum number of cached data keys for decoding. A history contains one key for each process and
	// hour in which the process wrote to it.
	keysKnown = 4096
)

// EnvelopeOption is an option of Envelope.
type EnvelopeOption func(*envelope)

// WithClock sets the clock that measures the age of data keys. The default is time.Now.
func WithClock(now func() time.Time) EnvelopeOption { return func(e *envelope) { e.now = now } }

// Envelope returns a codec that encrypts payloads with AES-256-GCM. Each payload stores its data key in wrapped form. A
// process requests a new data key every hour or every 1,048,576 payloads. It unwraps each key that it reads once and
// caches it, so that other payloads with the same key need no call of the key service.
//
// id is the ID of the codec. Use a different ID for each master key, because payloads with this ID must stay readable.
// If the master key is deleted, instances that read such payloads are blocked. Envelope panics if keys is nil.
func Envelope(id string, keys KeyProvider, opts ...EnvelopeOption) perdure.Codec {
	if keys == nil {
		panic("codec: Envelope: keys is nil")
	}
	//nolint:forbidigo // the default clock
	e := &envelope{id: id, keys: keys, now: time.Now, known: map[string]*dataKey{}}
	for _, opt := range opts {
		opt(e)
	}
	return e
}

type envelope struct {
	id   string
	keys KeyProvider
	now  func() time.Time

	making  sync.Mutex // held while a key is generated
	mu      sync.Mutex
	current *dataKey
	known   map[string]*dataKey
	order   []string // keys of known, oldest first
}

// dataKey is a data key that was unwrapped or is being unwrapped.
type dataKey struct {
	wrapped []byte
	sealer  cipher.AEAD
	made    time.Time
	uses    int
	opening sync.Mutex // held while the key is unwrapped
}

// ID implements perdure.Codec.
func (e *envelope) ID() string { return e.id }

// Encode implements perdure.Codec. The result is the version, the length of the wrapped key in two bytes, the wrapped
// key, the nonce, and the encrypted document.
func (e *envelope) Encode(ctx context.Context, _ perdure.PayloadInfo, doc []byte) ([]byte, error) {
	k, err := e.forEncoding(ctx)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, k.sealer.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	data := make([]byte, 0, 3+len(k.wrapped)+len(nonce)+len(doc)+k.sealer.Overhead())
	data = binary.BigEndian.AppendUint16(append(data, envelopeVersion), uint16(len(k.wrapped)))
	data = append(append(data, k.wrapped...), nonce...)
	return k.sealer.Seal(data, nonce, doc, []byte(e.id)), nil
}

// errTorn is the error for data that is not a complete envelope of this version.
var errTorn = errors.New("codec: decode envelope: unknown version or truncated data")

// Decode implements perdure.Codec.
func (e *envelope) Decode(ctx context.Context, _ perdure.PayloadInfo, data []byte) ([]byte, error) {
	if len(data) < 3 || data[0] != envelopeVersion {
		return nil, perdure.NonRetryable(errTorn)
	}
	n := int(binary.BigEndian.Uint16(data[1:]))
	if len(data) < 3+n {
		return nil, perdure.NonRetryable(errTorn)
	}
	wrapped, rest := data[3:3+n], data[3+n:]
	sealer, err := e.forDecoding(ctx, wrapped)
	if err != nil {
		return nil, err
	}
	if len(rest) < sealer.NonceSize() {
		return nil, perdure.NonRetryable(errTorn)
	}
	doc, err := sealer.Open(nil, rest[:sealer.NonceSize()], rest[sealer.NonceSize():], []byte(e.id))
	if err != nil {
		return nil, perdure.NonRetryable(fmt.Errorf("codec: decrypt envelope: %w", err))
	}
	return doc, nil
}

// forEncoding returns the current data key and counts its use.
func (e *envelope) forEncoding(ctx context.Context) (*dataKey, error) {
	if k := e.use(); k != nil {
		return k, nil
	}
	e.making.Lock()
	defer e.making.Unlock()
	if k := e.use(); k != nil { // another call has generated it in the meantime
		return k, nil
	}
	key, wrapped, err := e.keys.GenerateDataKey(ctx)
	if err != nil {
		return nil, fmt.Errorf("codec: data key: %w", err)
	}
	if len(wrapped) > 1<<16-1 {
		return nil, fmt.Errorf("codec: data key: wrapped key has %d bytes, limit 65535", len(wrapped))
	}
	sealer, err := sealerOf(key)
	if err != nil {
		return nil, err
	}
	k := &dataKey{wrapped: wrapped, sealer: sealer, made: e.now(), uses: 1}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.current = k
	e.keep(k)
	return k, nil
}

// use returns the current key and counts a use. It returns nil if the key has expired.
func (e *envelope) use() *dataKey {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := e.current
	if k == nil || k.uses >= keyUses || e.now().Sub(k.made) >= keyAge {
		return nil
	}
	k.uses++
	return k
}

// keep caches a key, and removes the oldest keys beyond the limit. The caller must hold mu.
func (e *envelope) keep(k *dataKey) {
	name := string(k.wrapped)
	if e.known[name] != nil {
		return
	}
	e.known[name] = k
	if e.order = append(e.order, name); len(e.order) > keysKnown {
		delete(e.known, e.order[0])
		e.order = e.order[1:]
	}
}

// forDecoding returns the AEAD of a wrapped key. If several calls need the same key, only one of them unwraps it.
func (e *envelope) forDecoding(ctx context.Context, wrapped []byte) (cipher.AEAD, error) {
	e.mu.Lock()
	k := e.known[string(wrapped)]
	if k == nil {
		k = &dataKey{wrapped: append([]byte(nil), wrapped...)}
		e.keep(k)
	}
	e.mu.Unlock()

	k.opening.Lock()
	defer k.opening.Unlock()
	if k.sealer != nil {
		return k.sealer, nil
	}
	key, err := e.keys.UnwrapDataKey(ctx, k.wrapped)
	if err != nil {
		return nil, fmt.Errorf("codec: data key: %w", err)
	}
	k.sealer, err = sealerOf(key)
	return k.sealer, err
}

func sealerOf(key []byte) (cipher.AEAD, error) {
	const size = 32
	if len(key) != size {
		return nil, fmt.Errorf("codec: data key: key has %d bytes, AES-256 requires %d", len(key), size)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("codec: data key: %w", err)
	}
	sealer, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("codec: data key: %w", err)
	}
	return sealer, nil
}
