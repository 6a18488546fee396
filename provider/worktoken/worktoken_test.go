package worktoken_test

import (
	"encoding/base64"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/worktoken"
)

func key(id string, letter string) *worktoken.Key {
	return worktoken.NewKey(id, []byte(strings.Repeat(letter, 32)))
}

func signed() provider.WorkItem {
	return provider.WorkItem{
		V: 1, ExecutionID: "01JEXECUTION01JEXECUTION00", Segment: 2, ActivityID: 5, Queue: "payments", Attempt: 1,
	}
}

// A hub verifies its tokens with all of its keys, including earlier ones.
func TestSigner_tokensOfAllKeys_areVerified(t *testing.T) {
	t.Parallel()
	old, next := key("1", "a"), key("2", "b")
	before, now := worktoken.NewSigner("orders", old), worktoken.NewSigner("orders", old, next)
	longest := provider.WorkItem{
		V: 1, ExecutionID: strings.Repeat("x", 256), Segment: math.MaxInt64, ActivityID: math.MaxInt64,
		Queue: strings.Repeat("q", 80), Attempt: math.MaxInt32,
	}
	for _, want := range []provider.WorkItem{signed(), longest, {V: 1}} {
		token := before.Sign(&want)
		for _, reader := range []*worktoken.Signer{before, now} {
			if got, err := reader.Verify(token); err != nil || got.Queue != want.Queue ||
				got.ExecutionID != want.ExecutionID || got.Segment != want.Segment ||
				got.ActivityID != want.ActivityID || got.Attempt != want.Attempt || got.V != provider.WireVersion {
				t.Errorf("%s: %+v, %v", token, got, err)
			}
		}
	}
	w := signed()
	latest := now.Sign(&w)
	if !strings.HasPrefix(latest, "w1.2.") || !strings.HasPrefix(before.Sign(&w), "w1.1.") || len(latest) > 110 {
		t.Errorf("%s was not signed with the last key", latest)
	}
	for name, reader := range map[string]*worktoken.Signer{
		"an unknown key":                    before,
		"a deleted key":                     worktoken.NewSigner("orders", old, key("3", "b")),
		"another secret with the same name": worktoken.NewSigner("orders", old, key("2", "c")),
		"another hub":                       worktoken.NewSigner("order", old, next),
		"another hub with a longer name":    worktoken.NewSigner("orderspayments", old, next),
	} {
		if got, err := reader.Verify(latest); !errors.Is(err, provider.ErrInvalidToken) || got.ExecutionID != "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// A token is invalid if any of its bits is changed.
func TestSigner_changedTokens_areInvalid(t *testing.T) {
	t.Parallel()
	tokens := worktoken.NewSigner("orders", key("1", "a"))
	w := signed()
	good := tokens.Sign(&w)
	text := strings.TrimPrefix(good, "w1.1.")
	hostile := []string{
		"", ".", "..", "...", "w1", "w1.", "w1..", "w1.1", "w1.1.", "w1.1.!!!", "w2.1." + text, "W1.1." + text,
		"w1.2." + text, "w1.01." + text, "1." + text, text, good + "A", good + ".", good + "=", " " + good,
		good + "\n", "w1.1.\x00", strings.Repeat("w1.1.", 1<<20), "w1.1." + strings.Repeat("A", 1<<20),
		"w1.1." + base64.RawURLEncoding.EncodeToString(make([]byte, 16)),
		"w1.1." + base64.RawURLEncoding.EncodeToString(make([]byte, 17)),
	}
	for n := range len(text) {
		hostile = append(hostile, "w1.1."+text[:n])
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(raw) {
		raw[bit/8] ^= 1 << (bit % 8)
		hostile = append(hostile, "w1.1."+base64.RawURLEncoding.EncodeToString(raw))
		raw[bit/8] ^= 1 << (bit % 8)
	}
	for _, token := range hostile {
		if got, err := tokens.Verify(token); !errors.Is(err, provider.ErrInvalidToken) || got.ExecutionID != "" {
			t.Errorf("token %.60q: %+v, %v", token, got, err)
		}
	}
	if _, err := tokens.Verify(good); err != nil {
		t.Errorf("unchanged token: %v", err)
	}
}

func TestSigner_concurrentUse_works(t *testing.T) {
	t.Parallel()
	tokens := worktoken.NewSigner("orders", key("1", "a"))
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for i := range 200 {
				w := signed()
				w.ActivityID = int64(1000*n + i)
				if got, err := tokens.Verify(tokens.Sign(&w)); err != nil || got.ActivityID != w.ActivityID {
					t.Errorf("activity %d: %+v, %v", w.ActivityID, got, err)
				}
			}
		})
	}
	all.Wait()
}

func BenchmarkSign(b *testing.B) {
	tokens := worktoken.NewSigner("orders", key("1", "a"))
	w := signed()
	b.ReportAllocs()
	for b.Loop() {
		tokens.Sign(&w)
	}
}
