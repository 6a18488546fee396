package cancels

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// someCancels returns decisions with ranges, with a bitmap, and for all activities.
func someCancels() provider.Cancels {
	scattered := provider.ActivityCancel{Reason: "requested", At: time.Unix(1, 0).UTC()}
	for id := int64(3); id < 200; id += 3 {
		scattered.IDs = history.AppendID(scattered.IDs, id)
	}
	return provider.Cancels{
		{IDs: []history.Range{{First: 5, Last: 9}}, Reason: "requested", Message: "by hand"},
		scattered,
		{All: true, Reason: history.ReasonInstanceDeleted},
	}
}

// FuzzDecodeTurns checks that the items of cancellations are rejected as torn or corrupt, or contain decisions that are
// encoded and decoded unchanged.
func FuzzDecodeTurns(f *testing.F) {
	doc, err := encodeJSON(someCancels())
	if err != nil {
		f.Fatal(err)
	}
	first, second := table.CancelDecisionsSK(7), table.CancelDecisionsSK(7)+"#001"
	f.Add(first, string(doc), int64(0), []byte(nil), second, []byte(nil))
	packed := table.Compress(doc)
	f.Add(first, "", int64(2), packed[:20], second, packed[20:])
	f.Add(first, "[]", int64(5), []byte(nil), "", []byte(nil)) // fewer items than parts
	f.Add(first, `[{"first":9223372036854775807,"bitmap":"/////w==","reason":"r"}]`, int64(1), packed, "b#x", packed)
	f.Fuzz(func(t *testing.T, sk1, doc string, parts int64, zstd1 []byte, sk2 string, zstd2 []byte) {
		turns, err := decodeTurns("X", table.SKCancelDecisions, []table.Item{
			{
				table.AttrSK: table.Str(sk1), AttrCancels: table.Str(doc), table.AttrParts: table.Num(parts),
				table.AttrZstd: table.Bin(zstd1),
			},
			{table.AttrSK: table.Str(sk2), table.AttrZstd: table.Bin(zstd2)},
		})
		_, torn := errors.AsType[*table.TornError](err)
		if err != nil && !torn && !errors.Is(err, provider.ErrCorrupt) {
			t.Errorf("error is neither a TornError nor ErrCorrupt: %v", err)
		}
		for _, turn := range turns {
			doc, err := encodeJSON(turn.cancels)
			if err != nil {
				t.Fatal(err)
			}
			// long messages and scattered IDs can get another form once
			again, err := decode("X", sk1, doc)
			if err != nil {
				t.Fatalf("%s: %v", doc, err)
			}
			for _, id := range []int64{1, 5, 7, 8, 64, 1 << 40} {
				if !cmp.Equal(again.Of(id).Requested, turn.cancels.Of(id).Requested) {
					t.Errorf("activity %d: %+v, then %+v", id, turn.cancels.Of(id), again.Of(id))
				}
			}
		}
	})
}
