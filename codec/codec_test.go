package codec_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/codec"
)

// memoryKeys wraps keys by storing them.
type memoryKeys struct {
	mu                   sync.Mutex
	keys                 map[string][]byte
	generated, unwrapped atomic.Int64
	generateFails        error
}

func (v *memoryKeys) GenerateDataKey(context.Context) (key, wrapped []byte, err error) {
	if v.generateFails != nil {
		return nil, nil, v.generateFails
	}
	v.generated.Add(1)
	key, wrapped = make([]byte, 32), make([]byte, 180)
	_, _ = rand.Read(key)
	_, _ = rand.Read(wrapped)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.keys == nil {
		v.keys = map[string][]byte{}
	}
	v.keys[string(wrapped)] = key
	return key, wrapped, nil
}

func (v *memoryKeys) UnwrapDataKey(_ context.Context, wrapped []byte) ([]byte, error) {
	v.unwrapped.Add(1)
	v.mu.Lock()
	defer v.mu.Unlock()
	key, ok := v.keys[string(wrapped)]
	if !ok {
		return nil, perdure.NonRetryable(errors.New("the key is deleted"))
	}
	return key, nil
}

var info = perdure.PayloadInfo{Kind: perdure.PayloadActivityInput, Name: "Charge"}

func roundTrip(t *testing.T, c perdure.Codec, doc []byte) (data []byte) {
	t.Helper()
	data, err := c.Encode(t.Context(), info, doc)
	if err != nil || data == nil {
		t.Fatalf("got %d bytes, error %v", len(data), err)
	}
	got, err := c.Decode(t.Context(), info, data)
	if err != nil || !bytes.Equal(got, doc) {
		t.Fatalf("got %.40s, error %v", got, err)
	}
	return data
}

func TestZstd_compressesLargePayloads(t *testing.T) {
	t.Parallel()
	c := codec.Zstd()
	doc := []byte(`"` + strings.Repeat("so much of the same ", 1000) + `"`)
	if data := roundTrip(t, c, doc); len(data) > len(doc)/10 {
		t.Errorf("got %d bytes for a document of %d bytes", len(data), len(doc))
	}
	noise := make([]byte, 3000)
	_, _ = rand.Read(noise)
	encoded, _ := json.Marshal(noise)
	for _, left := range [][]byte{[]byte(`"short"`), encoded} {
		if data, err := c.Encode(t.Context(), info, left); data != nil || err != nil {
			t.Errorf("%.20s: got %d bytes, error %v, want none", left, len(data), err)
		}
	}
	if _, err := c.Decode(t.Context(), info, []byte("no zstd")); !isFinal(err) {
		t.Error(err)
	}
}

// isFinal reports whether an error is marked with NonRetryable.
func isFinal(err error) bool {
	var marked interface{ NonRetryable() bool }
	return errors.As(err, &marked) && marked.NonRetryable()
}

func TestEnvelope_decodesWithItsKeyOnly(t *testing.T) {
	t.Parallel()
	doc := []byte(`{"card":"4111"}`)
	keys := &memoryKeys{}
	c := codec.Envelope("orders", keys)
	data := roundTrip(t, c, doc)
	if bytes.Contains(data, []byte("4111")) {
		t.Error("the encoded data contains plaintext")
	}
	if again := roundTrip(t, c, doc); bytes.Equal(again, data) {
		t.Error("two encryptions of a document are equal")
	}
	for name, reader := range map[string]perdure.Codec{
		"another id": codec.Envelope("others", keys), "the key is gone": codec.Envelope("orders", &memoryKeys{}),
	} {
		if _, err := reader.Decode(t.Context(), info, data); !isFinal(err) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	for i := range data {
		changed := bytes.Clone(data)
		changed[i] ^= 1
		if got, err := c.Decode(t.Context(), info, changed); !isFinal(err) {
			t.Fatalf("byte %d changed: got %s, error %v", i, got, err)
		}
		if got, err := c.Decode(t.Context(), info, data[:i]); !isFinal(err) {
			t.Fatalf("cut to %d bytes: got %s, error %v", i, got, err)
		}
	}
}

func TestEnvelope_dataKeys_areRequestedOnce(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	keys := &memoryKeys{}
	writer := codec.Envelope("orders", keys, codec.WithClock(func() time.Time { return now }))
	var all [][]byte
	for range 3 {
		for range 10 {
			all = append(all, roundTrip(t, writer, []byte(`1`)))
		}
		now = now.Add(time.Hour)
	}
	if keys.generated.Load() != 3 || keys.unwrapped.Load() != 0 {
		t.Errorf(
			"got %d keys generated, %d unwrapped; want 3, 0", keys.generated.Load(), keys.unwrapped.Load(),
		)
	}

	reader := codec.Envelope("orders", keys)
	var reading sync.WaitGroup
	for _, data := range all {
		reading.Go(func() {
			if _, err := reader.Decode(t.Context(), info, data); err != nil {
				t.Error(err)
			}
		})
	}
	reading.Wait()
	if keys.unwrapped.Load() != 3 {
		t.Errorf("got %d keys unwrapped, want 3", keys.unwrapped.Load())
	}
}

// Errors of generating and unwrapping keys are not cached.
func TestEnvelope_keyServiceOutage_isRetried(t *testing.T) {
	t.Parallel()
	keys := &memoryKeys{generateFails: errors.New("throttled")}
	c := codec.Envelope("orders", keys)
	if _, err := c.Encode(t.Context(), info, []byte(`1`)); err == nil || isFinal(err) {
		t.Error(err)
	}
	keys.generateFails = nil
	roundTrip(t, c, []byte(`1`))
}

func TestChain_decodesWhatItEncodes(t *testing.T) {
	t.Parallel()
	c := codec.Chain("zstd-orders", codec.Zstd(), codec.Envelope("orders", &memoryKeys{}))
	doc := []byte(`"` + strings.Repeat("so much of the same ", 1000) + `"`)
	if data := roundTrip(t, c, doc); len(data) > len(doc)/10 {
		t.Errorf("got %d bytes for a document of %d bytes", len(data), len(doc))
	}
	roundTrip(t, c, []byte(`"short"`)) // zstd does not compress it
	both := codec.Chain("both", codec.Zstd(), codec.Zstd())
	if data, err := both.Encode(t.Context(), info, []byte(`"short"`)); data != nil || err != nil {
		t.Errorf("got %v, error %v", data, err)
	}
	for want, codecs := range map[string][]perdure.Codec{
		": 1 codecs; use 2 to 8": {codec.Zstd()},
		"codec 2 of 2 is nil":    {codec.Zstd(), nil},
	} {
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, want) {
					t.Errorf("got panic %q, want %q in it", got, want)
				}
			}()
			codec.Chain("mistaken", codecs...)
		}()
	}
	for _, torn := range [][]byte{nil, {4, 1}, {1, 1}} {
		if _, err := both.Decode(t.Context(), info, torn); !isFinal(err) {
			t.Errorf("%v: got error %v", torn, err)
		}
	}
}
