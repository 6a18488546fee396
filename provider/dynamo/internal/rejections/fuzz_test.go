package rejections

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
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

// FuzzRead checks that stored rejections are returned unchanged, also after they were written again, or are rejected as
// corrupt.
func FuzzRead(f *testing.F) {
	f.Add(`[{"x":"01JX","first":3,"last":9},{"x":"01JY","first":1,"last":1}]`)
	f.Add(`[{"x":"01JX","first":9223372036854775807,"last":-1}]`)
	f.Add(`{}`)
	f.Add(``)
	f.Fuzz(func(t *testing.T, doc string) {
		stored := &oneItem{item: table.Item{attrRejectedEvents: table.Str(doc), attrWrites: table.Num(7)}}
		rj := New(table.New(stored, "t"), nil, time.Now, slog.New(slog.DiscardHandler))
		events, err := rj.ReadRejectedEvents(t.Context(), "a")
		if err != nil {
			if !errors.Is(err, provider.ErrCorrupt) {
				t.Errorf("error is not ErrCorrupt: %v", err)
			}
			return
		}
		_, senders, err := rj.read(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		put, err := rj.encode("a", 7, senders)
		if err != nil {
			t.Fatal(err)
		}
		stored.item = put.Item
		if again, err := rj.ReadRejectedEvents(t.Context(), "a"); err != nil || !cmp.Equal(again, events) {
			t.Errorf("%q: %v, then %v, error %v", doc, events, again, err)
		}
		m := provider.InboxMessage{}
		m.Parent = &history.Parent{ExecutionID: "01JX", EventID: 5}
		if more := addRejected(senders, []*provider.InboxMessage{&m}); len(more) > maxSenders {
			t.Errorf("%d senders", len(more))
		}
	})
}
