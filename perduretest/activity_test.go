package perduretest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/perduretest"
)

// attempt is the second attempt of an activity. The first attempt processed six rows.
type attempt struct{ heartbeatsOf int }

func (a *attempt) Record(json.RawMessage, error) { a.heartbeatsOf++ }
func (a *attempt) LastDetails() json.RawMessage  { return json.RawMessage(`6`) }

func ExampleContextWithHeartbeatRecorder() {
	importRows := func(ctx context.Context, rows int) int {
		first, _ := perdure.HeartbeatDetails[int](ctx)
		for row := first; row < rows; row++ {
			perdure.Heartbeat(ctx, row+1)
		}
		return rows - first
	}
	var second attempt
	n := importRows(perduretest.ContextWithHeartbeatRecorder(context.Background(), &second), 10)
	fmt.Println(n, "rows,", second.heartbeatsOf, "heartbeats")
	// Output: 4 rows, 4 heartbeats
}

func TestContextWithActivityInfo_activityInfoFrom_returnsIt(t *testing.T) {
	t.Parallel()
	want := perdure.ActivityInfo{
		InstanceID: "order-17", ExecutionID: "01JEXECUTION", ActivityID: 3, Name: "charge", Attempt: 2,
		DeliveryCount: 1, Queue: "payments",
	}
	if got := perdure.ActivityInfoFrom(perduretest.ContextWithActivityInfo(t.Context(), want)); got != want {
		t.Errorf("got %+v", got)
	}
}
