package outbox

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// oneItem is a table whose reads return the same item.
type oneItem struct {
	table.API

	item table.Item
}

func (o *oneItem) GetItem(
	context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options),
) (*dynamodb.GetItemOutput, error) {
	return &dynamodb.GetItemOutput{Item: o.item}, nil
}

// FuzzRecords checks that the IDs of a dispatch record become a set that has all of them, or are ignored, and that a
// cursor is read or rejected. The work does not depend on the length of a range.
func FuzzRecords(f *testing.F) {
	f.Add(`[[3,9],[11,11],[1,2]]`, int64(7), `[{"eventId":3,"failure":{"type":"t"}}]`)
	f.Add(`[[1,9223372036854775807],[9223372036854775807,9223372036854775807]]`, int64(-1), `{}`)
	f.Add(`[[9,3],[5,5]]`, int64(0), ``)
	f.Add(`[[-9223372036854775808,9223372036854775807]]`, int64(0), `[]`)
	f.Fuzz(func(t *testing.T, runs string, upTo int64, rejected string) {
		record := table.Item{attrAccepted: table.Str(runs)}
		ob := New(Stores{Table: table.New(&oneItem{item: table.Item{
			attrUpTo: table.Num(upTo), attrSendRefused: table.Str(rejected),
		}}, "t")}, time.Now, slog.New(slog.DiscardHandler))
		set := ob.addIDs(t.Context(), nil, record, attrAccepted)
		for i, r := range set {
			if r.First < 1 || r.Last < r.First || i > 0 && r.First <= set[i-1].Last {
				t.Fatalf("%s becomes the set %v", runs, set)
			}
		}
		var given []history.Range
		if json.Unmarshal([]byte(runs), &given) == nil {
			for _, r := range given {
				if len(set) > 0 && (!set.Has(r.First) || !set.Has(r.Last)) {
					t.Errorf("%s becomes the set %v", runs, set)
				}
			}
		}
		c := cursor{instanceID: "a"}
		if err := ob.readCursor(t.Context(), &c); err == nil && c.upTo != upTo {
			t.Errorf("cursor %+v, want %d", c, upTo)
		}
	})
}
