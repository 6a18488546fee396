package segments

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// segmentOf returns a segment of one event whose value is a string of the given size, compressible or not.
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
		Events: []history.Event{
			{
				ID: 1, Kind: history.SideEffectRecorded, Time: time.Unix(0, 0).UTC(),
				Value: history.Payload(`"` + string(doc) + `"`),
			},
		},
	}
}

func encoded(tb testing.TB, s provider.Segment) []table.Item {
	tb.Helper()
	items, err := Encode("X", "nonce", s)
	if err != nil {
		tb.Fatal(err)
	}
	return items
}

func packedBytes(it table.Item) int {
	v, ok := it[table.AttrZstd].(*types.AttributeValueMemberB)
	if !ok {
		return 0
	}
	return len(v.Value)
}

func TestEncode_smallSegment_isReadableJSON(t *testing.T) {
	t.Parallel()
	overhead := len(table.GetString(encoded(t, segmentOf(1, 10, true))[0], table.AttrEvents)) - 10
	for size, readable := range map[int]bool{
		0: true, table.JSONLimit - overhead: true, table.JSONLimit - overhead + 1: false, 100 << 10: false,
	} {
		items := encoded(t, segmentOf(1, size, true))
		if got := table.GetString(items[0], table.AttrEvents) != ""; got != readable || len(items) != 1 ||
			readable == (packedBytes(items[0]) > 0) {
			t.Errorf("%d bytes: readable %v, %d packed, %d items", size, got, packedBytes(items[0]), len(items))
		}
	}
}

func TestEncode_largeSegment_isSplitIntoParts(t *testing.T) {
	t.Parallel()
	for size, parts := range map[int]int{
		300 << 10: 1, table.PartLimit + 1: 2, 3*table.PartLimit - 8<<10: 3, table.SegmentLimit - 8<<10: 9,
	} {
		s := segmentOf(7, size, false)
		items := encoded(t, s)
		if len(items) != parts || table.GetNumber(items[0], table.AttrParts) != int64(parts) {
			t.Errorf("%d bytes: %d items, %d parts, want %d", size, len(items),
				table.GetNumber(items[0], table.AttrParts), parts)
		}
		for n, it := range items {
			if table.GetString(it, table.AttrPK) != "x#X" ||
				table.GetString(it, table.AttrSK) != table.SegmentSK(7, n) || packedBytes(it) > table.PartLimit ||
				packedBytes(it) == 0 {
				t.Errorf("part %d is %s %s of %d bytes", n, table.GetString(it, table.AttrPK),
					table.GetString(it, table.AttrSK), packedBytes(it))
			}
		}
		got, err := decode(7, items)
		if err != nil || got.Watermark != s.Watermark || !bytes.Equal(got.Events[0].Value, s.Events[0].Value) {
			t.Errorf("%d bytes: the decoded segment differs, error %v", size, err)
		}
	}
}

func TestEncode_firstPart_hasTheHeader(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, table.PartLimit + 1} {
		first := encoded(t, segmentOf(3, size, false))[0]
		if table.GetString(first, table.AttrNonce) != "nonce" || table.GetString(first, table.AttrInbox) != "inbox" ||
			table.GetString(first, table.AttrWM) != "42" || table.GetString(first, table.AttrSK) != "h#0000000003" {
			t.Errorf("header: %v", first)
		}
	}
}

// A segment that could be written but not read must not be written.
func TestEncode_tooLargeOrInvalidSegment_isRejected(t *testing.T) {
	t.Parallel()
	if _, err := Encode("X", "nonce", segmentOf(1, table.SegmentLimit+64<<10, false)); !errors.Is(err,
		provider.ErrTooLarge) {
		t.Errorf("too many compressed bytes: %v", err)
	}
	if _, err := pack(make([]byte, table.DecodeLimit+1)); !errors.Is(err, provider.ErrTooLarge) {
		t.Errorf("too many uncompressed bytes: %v", err)
	}
	bad := segmentOf(1, 1, true)
	bad.Events[0].Kind = "Unknown"
	if _, err := Encode("X", "nonce", bad); err == nil {
		t.Error("an invalid event is encoded")
	}
}

// someItems returns the items of a history: a small segment 0, a segment of three parts, and a small segment.
func someItems(tb testing.TB) []table.Item {
	tb.Helper()
	var items []table.Item
	for sequence, size := range []int{10, 3*table.PartLimit - 8<<10, 10} {
		items = append(items, encoded(tb, segmentOf(int64(sequence), size, false))...)
	}
	return items
}

// R8: contiguity and part counts are always checked. A torn history is read again, and a corrupt history is not.
func TestDecodeAll_incompleteOrCorruptItems_areDetected(t *testing.T) {
	t.Parallel()
	whole := someItems(t)
	drop := func(n int) func([]table.Item) []table.Item {
		return func(items []table.Item) []table.Item { return slices.Delete(items, n, n+1) }
	}
	set := func(n int, name string, v types.AttributeValue) func([]table.Item) []table.Item {
		return func(items []table.Item) []table.Item { items[n][name] = v; return items }
	}
	for name, c := range map[string]struct {
		damage  func([]table.Item) []table.Item
		corrupt bool
	}{
		"no first segment":        {drop(0), false},
		"no first part":           {drop(1), false},
		"no middle part":          {drop(2), false},
		"no last part":            {drop(3), false},
		"last part not yet there": {func(items []table.Item) []table.Item { return items[:3] }, false},
		"parts in another order": {func(items []table.Item) []table.Item {
			items[2], items[3] = items[3], items[2]
			return items
		}, false},
		"a segment twice":         {func(items []table.Item) []table.Item { return append(items, items[4]) }, false},
		"no part count":           {set(0, table.AttrParts, table.Str("1")), false},
		"a negative part count":   {set(0, table.AttrParts, table.Num(-1)), false},
		"an enormous part count":  {set(0, table.AttrParts, table.Num(1<<40)), false},
		"neither JSON nor zstd":   {set(4, table.AttrEvents, table.Num(1)), false},
		"a key of something else": {set(0, table.AttrSK, table.Str("h#x")), true},
		"no JSON":                 {set(0, table.AttrEvents, table.Str("{")), true},
		"a kind of a later release": {
			set(0, table.AttrEvents, table.Str(`[{"id":1,"kind":"Later","time":"2026-01-01T00:00:00Z"}]`)), true,
		},
		"no zstd": {set(1, table.AttrZstd, &types.AttributeValueMemberB{Value: []byte("x")}), true},
	} {
		items := slices.Clone(whole)
		for n := range items {
			items[n] = maps.Clone(items[n])
		}
		_, err := decodeAll(c.damage(items))
		_, torn := errors.AsType[*table.TornError](err)
		if torn == c.corrupt || errors.Is(err, provider.ErrCorrupt) != c.corrupt {
			t.Errorf("%s: %v", name, err)
		}
	}
	segments, err := decodeAll(whole)
	if err != nil || len(segments) != 3 {
		t.Errorf("complete history: %d segments, error %v", len(segments), err)
	}
}

// The end of a history is read backward, item by item, with the same checks.
func TestLastEvent_incompleteParts_areDetected(t *testing.T) {
	t.Parallel()
	parts := encoded(t, segmentOf(5, 2*table.PartLimit-8<<10, false))
	other := encoded(t, segmentOf(4, 10, false))
	for name, items := range map[string][]table.Item{
		"no last part": parts[:1], "no first part": {other[0], parts[1]}, "only a last part": parts[1:],
	} {
		_, err := lastEvent(items)
		if _, torn := errors.AsType[*table.TornError](err); !torn {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := lastEvent(nil); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("no items: %v", err)
	}
	if _, err := lastEvent(parts); !errors.Is(err, provider.ErrNotFound) ||
		!strings.Contains(err.Error(), "not ended") {
		t.Errorf("history without an end: %v", err)
	}
}

// FuzzDecodeSegments checks that the decoder returns segments without a gap, or an error, for any items.
func FuzzDecodeSegments(f *testing.F) {
	f.Add("h#0000000000", int64(1), `[{"id":1,"kind":"TurnStarted","time":"2026-01-01T00:00:00Z"}]`, []byte(nil),
		"h#0000000001", int64(1), []byte(nil))
	whole := someItems(f)
	for n := range len(whole) - 1 {
		a, b := whole[n], whole[n+1]
		packed := func(it table.Item) []byte {
			if v, ok := it[table.AttrZstd].(*types.AttributeValueMemberB); ok {
				return v.Value[:min(4<<10, len(v.Value))]
			}
			return nil
		}
		f.Add(table.GetString(a, table.AttrSK), table.GetNumber(a, table.AttrParts),
			table.GetString(a, table.AttrEvents), packed(a), table.GetString(b, table.AttrSK),
			table.GetNumber(b, table.AttrParts), packed(b))
	}
	f.Fuzz(func(
		t *testing.T, sk1 string, parts1 int64, events string, zstd1 []byte, sk2 string, parts2 int64, zstd2 []byte,
	) {
		first := table.Item{
			table.AttrSK: table.Str(sk1), table.AttrParts: table.Num(parts1),
			table.AttrZstd: &types.AttributeValueMemberB{Value: zstd1},
		}
		if events != "" {
			first[table.AttrEvents] = table.Str(events)
		}
		second := table.Item{
			table.AttrSK: table.Str(sk2), table.AttrParts: table.Num(parts2),
			table.AttrZstd: &types.AttributeValueMemberB{Value: zstd2},
		}
		segments, err := decodeAll([]table.Item{first, second})
		_, torn := errors.AsType[*table.TornError](err)
		if err != nil && !torn && !errors.Is(err, provider.ErrCorrupt) {
			t.Errorf("error is neither a TornError nor ErrCorrupt: %v", err)
		}
		for i := range segments {
			if segments[i].Sequence != int64(i) {
				t.Errorf("segment %d, want %d", segments[i].Sequence, i)
			}
		}
		_, _ = lastEvent([]table.Item{first, second}) // must not panic
	})
}
