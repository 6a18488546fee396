package dynamo

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/klauspost/compress/zstd"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// segmentOf returns a segment of one event whose value is a string of the given size that does not compress, or
// compresses to nothing.
func segmentOf(sequence int64, size int, compressible bool) provider.Segment {
	doc := bytes.Repeat([]byte("x"), size)
	if !compressible {
		r := rand.New(rand.NewPCG(1, 2))
		for i := range doc {
			doc[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[r.IntN(64)]
		}
	}
	return provider.Segment{
		Sequence: sequence, Watermark: provider.Position{Inbox: "inbox", Sequence: "42"},
		Events: []history.Event{{ID: 1, Kind: history.SideEffectRecorded, Time: time.Unix(0, 0).UTC(), Value: history.Payload(`"` + string(doc) + `"`)}},
	}
}

func encoded(tb testing.TB, s provider.Segment) []item {
	tb.Helper()
	items, err := encodeSegment("X", "nonce", s)
	if err != nil {
		tb.Fatal(err)
	}
	return items
}

func packedBytes(it item) int {
	v, ok := it[attrZstd].(*types.AttributeValueMemberB)
	if !ok {
		return 0
	}
	return len(v.Value)
}

func TestSegmentsAreReadableWhileSmall(t *testing.T) {
	t.Parallel()
	overhead := len(getString(encoded(t, segmentOf(1, 10, true))[0], attrEvents)) - 10
	for size, readable := range map[int]bool{0: true, jsonLimit - overhead: true, jsonLimit - overhead + 1: false, 100 << 10: false} {
		items := encoded(t, segmentOf(1, size, true))
		if got := getString(items[0], attrEvents) != ""; got != readable || len(items) != 1 || readable == (packedBytes(items[0]) > 0) {
			t.Errorf("%d bytes: readable %v, %d packed, %d items", size, got, packedBytes(items[0]), len(items))
		}
	}
}

func TestLargeSegmentsAreSplit(t *testing.T) {
	t.Parallel()
	for size, parts := range map[int]int{300 << 10: 1, partLimit + 1: 2, 3*partLimit - 8<<10: 3, turnLimit - 8<<10: 9} {
		s := segmentOf(7, size, false)
		items := encoded(t, s)
		if len(items) != parts || getNumber(items[0], attrParts) != int64(parts) {
			t.Errorf("%d bytes: %d items, %d parts, want %d", size, len(items), getNumber(items[0], attrParts), parts)
		}
		for n, it := range items {
			if getString(it, attrPK) != "x#X" || getString(it, attrSK) != segmentSK(7, n) || packedBytes(it) > partLimit || packedBytes(it) == 0 {
				t.Errorf("part %d is %s %s of %d bytes", n, getString(it, attrPK), getString(it, attrSK), packedBytes(it))
			}
		}
		got, err := decodeSegment(7, items)
		if err != nil || got.Watermark != s.Watermark || !bytes.Equal(got.Events[0].Value, s.Events[0].Value) {
			t.Errorf("%d bytes: came back different: %v", size, err)
		}
	}
}

func TestTheFirstPartHasTheHeader(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, partLimit + 1} {
		first := encoded(t, segmentOf(3, size, false))[0]
		if getString(first, attrNonce) != "nonce" || getString(first, attrInbox) != "inbox" || getString(first, attrWM) != "42" || getString(first, attrSK) != "h#0000000003" {
			t.Errorf("header: %v", first)
		}
	}
}

// A segment that could be written but not read must not be written.
func TestWhatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := encodeSegment("X", "nonce", segmentOf(1, turnLimit+64<<10, false)); !errors.Is(err, provider.ErrTooLarge) {
		t.Errorf("too many bytes compressed: %v", err)
	}
	if _, err := pack(make([]byte, decodeLimit+1)); !errors.Is(err, provider.ErrTooLarge) {
		t.Errorf("too many bytes unfolded: %v", err)
	}
	bad := segmentOf(1, 1, true)
	bad.Events[0].Kind = "Unknown"
	if _, err := encodeSegment("X", "nonce", bad); err == nil {
		t.Error("an invalid event is written")
	}
}

// history of a small segment 0, one of three parts, and a small one.
func someItems(tb testing.TB) []item {
	tb.Helper()
	var items []item
	for sequence, size := range []int{10, 3*partLimit - 8<<10, 10} {
		items = append(items, encoded(tb, segmentOf(int64(sequence), size, false))...)
	}
	return items
}

// R8: contiguity and part counts are always checked. A torn history is read again, a corrupt one is not.
func TestReadsThatAreNotWhole(t *testing.T) {
	t.Parallel()
	whole := someItems(t)
	drop := func(n int) func([]item) []item {
		return func(items []item) []item { return slices.Delete(items, n, n+1) }
	}
	set := func(n int, name string, v types.AttributeValue) func([]item) []item {
		return func(items []item) []item { items[n][name] = v; return items }
	}
	for name, c := range map[string]struct {
		spoil   func([]item) []item
		corrupt bool
	}{
		"no first segment":          {drop(0), false},
		"no first part":             {drop(1), false},
		"no middle part":            {drop(2), false},
		"no last part":              {drop(3), false},
		"last part not yet there":   {func(items []item) []item { return items[:3] }, false},
		"parts in another order":    {func(items []item) []item { items[2], items[3] = items[3], items[2]; return items }, false},
		"a segment twice":           {func(items []item) []item { return append(items, items[4]) }, false},
		"no part count":             {set(0, attrParts, str("1")), false},
		"a negative part count":     {set(0, attrParts, num(-1)), false},
		"an enormous part count":    {set(0, attrParts, num(1<<40)), false},
		"neither JSON nor zstd":     {set(4, attrEvents, num(1)), false},
		"a key of something else":   {set(0, attrSK, str("h#x")), true},
		"no JSON":                   {set(0, attrEvents, str("{")), true},
		"a kind of a later release": {set(0, attrEvents, str(`[{"id":1,"kind":"Later","time":"2026-01-01T00:00:00Z"}]`)), true},
		"no zstd":                   {set(1, attrZstd, &types.AttributeValueMemberB{Value: []byte("x")}), true},
	} {
		items := slices.Clone(whole)
		for n := range items {
			items[n] = maps.Clone(items[n])
		}
		_, err := decodeSegments(c.spoil(items))
		_, torn := errors.AsType[*tornError](err)
		if torn == c.corrupt || errors.Is(err, provider.ErrCorrupt) != c.corrupt {
			t.Errorf("%s: %v", name, err)
		}
	}
	segments, err := decodeSegments(whole)
	if err != nil || len(segments) != 3 {
		t.Errorf("the whole: %d segments, %v", len(segments), err)
	}
}

// The end of a history is read backwards, item by item: the same checks hold.
func TestLastEventOfPartsThatAreNotWhole(t *testing.T) {
	t.Parallel()
	parts := encoded(t, segmentOf(5, 2*partLimit-8<<10, false))
	other := encoded(t, segmentOf(4, 10, false))
	for name, items := range map[string][]item{
		"no last part": parts[:1], "no first part": {other[0], parts[1]}, "only a last part": parts[1:],
	} {
		_, err := lastEvent(items)
		if _, torn := errors.AsType[*tornError](err); !torn {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := lastEvent(nil); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("nothing: %v", err)
	}
	if _, err := lastEvent(parts); !errors.Is(err, provider.ErrNotFound) || !strings.Contains(err.Error(), "not ended") {
		t.Errorf("not ended: %v", err)
	}
}

// FuzzDecodeSegments: whatever is in the table, decoding ends with segments without a gap or with an error.
func FuzzDecodeSegments(f *testing.F) {
	f.Add("h#0000000000", int64(1), `[{"id":1,"kind":"TurnStarted","time":"2026-01-01T00:00:00Z"}]`, []byte(nil), "h#0000000001", int64(1), []byte(nil))
	whole := someItems(f)
	for n := range len(whole) - 1 {
		a, b := whole[n], whole[n+1]
		packed := func(it item) []byte {
			if v, ok := it[attrZstd].(*types.AttributeValueMemberB); ok {
				return v.Value[:min(4<<10, len(v.Value))]
			}
			return nil
		}
		f.Add(getString(a, attrSK), getNumber(a, attrParts), getString(a, attrEvents), packed(a), getString(b, attrSK), getNumber(b, attrParts), packed(b))
	}
	f.Fuzz(func(t *testing.T, sk1 string, parts1 int64, events string, zstd1 []byte, sk2 string, parts2 int64, zstd2 []byte) {
		first := item{attrSK: str(sk1), attrParts: num(parts1), attrZstd: &types.AttributeValueMemberB{Value: zstd1}}
		if events != "" {
			first[attrEvents] = str(events)
		}
		second := item{attrSK: str(sk2), attrParts: num(parts2), attrZstd: &types.AttributeValueMemberB{Value: zstd2}}
		segments, err := decodeSegments([]item{first, second})
		_, torn := errors.AsType[*tornError](err)
		if err != nil && !torn && !errors.Is(err, provider.ErrCorrupt) {
			t.Errorf("an error of neither kind: %v", err)
		}
		for i := range segments {
			if segments[i].Sequence != int64(i) {
				t.Errorf("segment %d where %d is due", segments[i].Sequence, i)
			}
		}
		_, _ = lastEvent([]item{first, second}) // must not panic
	})
}

// Users' tests live in bubbles of testing/synctest, one after the other, and the encoder outlives them all.
func TestTheEncoderWorksInEveryBubble(t *testing.T) {
	t.Parallel()
	fresh := ready(must(zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))))
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			if len(fresh.EncodeAll([]byte("x"), nil)) == 0 {
				t.Error("nothing is encoded")
			}
		})
	}
}
