package dynamo_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
)

// The turn has scheduled more activities than a process caches. Retries and completions in the order of the calls read
// the turn a few times, not once per activity.
func TestReadWorkItem_manyActivitiesOfOneTurn_readsTheTurnAFewTimes(t *testing.T) {
	t.Parallel()
	const called = 200
	l := newLong(t)
	in := history.Payload(`"` + strings.Repeat("x", 100<<10) + `"`)
	turn := &provider.Turn{InstanceID: "a", Head: l.head, Watermark: provider.Position{Inbox: "in", Sequence: "2"}}
	for id := range int64(called) {
		turn.Events = append(turn.Events, history.Event{
			ID: 2 + id, Kind: history.ActivityScheduled, Time: time.Unix(2, 0).UTC(), Name: "copy", Queue: "default",
			Input: in,
		})
	}
	if _, err := l.AckOrchestrationItem(t.Context(), turn); err != nil {
		t.Fatal(err)
	}

	reads := 0
	l.fault = func(_ context.Context, c simaws.Call, next func() error) error {
		if of, ok := c.Input.(*dynamodb.QueryInput); ok {
			last, _ := of.ExpressionAttributeValues[":last"].(*types.AttributeValueMemberS)
			if last != nil && strings.HasSuffix(last.Value, "#999") { // the parts of one segment
				reads++
			}
		}
		return next()
	}
	for id := range int64(called) {
		w, err := l.ReadWorkItem(t.Context(), "a", l.in.ExecutionID, 1, 2+id)
		if err != nil || w.ActivityID != 2+id || len(w.Input) != len(in) {
			t.Fatalf("activity %d: #%d, %d bytes, %v", 2+id, w.ActivityID, len(w.Input), err)
		}
	}
	if reads > 6 {
		t.Errorf("%d reads for %d activities", reads, called)
	}
	if _, err := l.ReadWorkItem(t.Context(), "a", l.in.ExecutionID, 1, 2); err != nil || reads > 7 {
		t.Errorf("repeated read of the first activity: error %v, %d reads", err, reads)
	}
}
