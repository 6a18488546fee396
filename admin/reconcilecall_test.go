package admin_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/simhub"
)

// addCalls adds the orchestration "caller", which calls another instance twice.
// addCalls also adds the orchestration "adds", which accepts a limited number of calls.
func addCalls(_ *lost, r *perdure.Registry) {
	perdure.AddOrchestration(r, "caller", func(ctx *perdure.OrchestrationContext, to string) (string, error) {
		responses := ""
		for n := range 2 {
			v, err := perdure.CallUpdate[int](ctx, to, "add", n+1).Await(ctx)
			switch {
			case err == nil:
				responses += fmt.Sprint(v, ", ")
			case errors.Is(err, perdure.ErrInstanceNotFound):
				responses += "absent, "
			case errors.Is(err, perdure.ErrInstanceEnded):
				responses += "over, "
			}
		}
		return responses, nil
	})
	perdure.AddOrchestration(r, "adds", func(ctx *perdure.OrchestrationContext, last int) (string, error) {
		sum, taken := 0, 0
		// the instance ends with the last call, before the caller can call again
		enough := perdure.CreateTimer(ctx, 365*24*time.Hour)
		err := perdure.SetUpdateHandler(ctx, "add", func(_ *perdure.OrchestrationContext, n int) (int, error) {
			sum += n
			if taken++; taken == last {
				enough.Cancel("it has taken all")
			}
			return sum, nil
		}, perdure.Serialized())
		if err == nil {
			_, _ = enough.Await(ctx)
		}
		return fmt.Sprint(sum), err
	})
}

// All queues are lost while a call or its response is in a queue.
// The caller still gets a response, and the called instance handles the call once.
func TestReconcile_queuesLostDuringCallUpdate_callIsHandledOnce(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"updateSent", "updateAnswered"} {
		for _, tt := range []struct {
			last                 any
			output, receivedText string
		}{
			{2, "1, 3, ", "3"},
			{1, "1, over, ", "1"},
			{nil, "absent, " + "absent, ", ""},
		} {
			for _, ago := range []time.Duration{20 * time.Minute, 20 * 24 * time.Hour} {
				t.Run(fmt.Sprint(kind, " ", tt.output, ago), func(t *testing.T) {
					t.Parallel()
					onHub(t, simhub.Options{BatchSize: 1}, addCalls, func(h *lost) {
						h.overLoss(kind, "caller", "adds", tt.last, tt.output, tt.receivedText, ago)
					})
				})
			}
		}
	}
}
