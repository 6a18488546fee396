package dispatch_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// scenario is an orchestration that must return the same result despite crashes.
type scenario struct {
	name      string
	input     any
	want      string
	instances int // number of instances at the end
	// meanwhile runs while the orchestration runs, as a client; nil: nothing.
	meanwhile func(h *hub, in provider.Instance)
}

// scenarios returns the orchestrations that crash tests and chaos tests run.
func scenarios() []scenario {
	return []scenario{
		{"nothing", 7, "7", 1, nil},
		{"inline-chain", 3, "3", 1, nil},
		{"inline-fan", 5, "15", 1, nil},
		{"inline-mixed", 2, "4", 1, nil},
		{"inline-again", 2, `"done"`, 1, nil},
		{"inline-race", []time.Duration{time.Second, 100 * time.Millisecond}, "2", 1, nil},
		{"inline-race", []time.Duration{5 * time.Second, 4 * time.Second}, "2", 1, nil},
		{"inline-medley", 1, `"at 5"`, 3, nil},
		{"chain", 3, "3", 1, nil},
		{"fan", 5, "15", 1, nil},
		{"timer", time.Minute, "", 1, nil},
		{"no-queue", 1, "", 1, nil},
		{"retries", 3, "3", 1, nil},
		{"begins-once", 3, "3", 1, nil},
		{"statuses", 3, "3", 1, nil},
		{"parent", 2, "2", 2, nil},
		{"nested", 2, "2", 3, nil},
		{"children", 3, "6", 4, nil},
		{"failing-child", 3, "3", 4, nil},
		{"taken", "i-1", "", 1, nil},
		{"detaches", 2, "", 2, nil},
		{"again", 3, `"0 left, 6 counted"`, 5, nil},
		{"again-at-once", 3, `"done"`, 4, nil},
		{"child-again", 2, `"0 left, 3 counted"`, 4, nil},
		{"exchange", sendInput{Events: 3}, `"3 delivered; received [0 1 2]"`, 2, nil},
		{"exchange", sendInput{Events: 3, Continues: true}, `"3 delivered; received [0 1 2]"`, 2, nil},
		{"sender", sendInput{To: "missing", Events: 2}, `"2 absent"`, 1, nil},
		{"sender", sendInput{To: "i-1", Events: 2}, `"2 delivered"`, 1, nil},
		{"starts-receiver", "c", `"received [7 8]"`, 2, nil},
		{"sends-to-ended", "c", `"1 over"`, 2, nil},
		{"calls", calling{To: "c", Calls: 2, tallying: tallying{Left: 2}}, `"[[0] [0 1]]"`, 2, nil},
		{
			"calls",
			calling{To: "c", Calls: 3, tallying: tallying{Left: 3, Continues: true, Slow: true}},
			`"[[0] [0 1] [0 1 2]]"`, 2, nil,
		},
		{"calls", calling{To: "c", Calls: 2, ID: "u", tallying: tallying{Left: 1, Slow: true}}, `"[[0] [0]]"`, 2, nil},
		{"calls", calling{To: "i-1", Calls: 2}, `"[[0] [0 1]]"`, 1, nil},
		{"calls-missing", "c", `"true"`, 1, nil},
		{"calls-ended", "c", `"true"`, 2, nil},
		{"pauses", pausing{Events: 3}, `"received [0 1 2]"`, 2, pausedMeanwhile},
		{"pauses", pausing{Events: 3, Continues: true}, `"received [0 1 2]"`, 4, pausedMeanwhile},
		{"pauses", pausing{Events: 3}, `"received [0 1 2]"`, 2, pausedBeforeStart},
		{"updates", updating{Events: 2}, "5", 1, updatedMeanwhile},
		{"updates", updating{Events: 2, Continues: true}, "5", 1, updatedMeanwhile},
		{"hands-over", false, `"answered"`, 1, completedMeanwhile},
		{"hands-over", true, `"answered"`, 1, completedMeanwhile},
	}
}

// crashStep is the step between the crashed calls in a short run. It is a prime, so that a loop of calls crashes at
// different calls.
const crashStep = 5

// 1. The process of a function crashes before or after its n-th AWS call, for every n.
// 2. The instance ends as without a crash, its history is valid, and the queues are empty.
// Cold reads use and write rollups.
func TestCrash_atAnyCall_changesNothing(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios() {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/after=%v", s.name, after), func(t *testing.T) {
				t.Parallel()
				for n := int64(1); crashAt(t, s, n, after,
					simhub.Options{Environments: 2, Rollup: 1}); n += shortrun.Step(crashStep) {
				}
			})
		}
	}
}

// The response to the n-th transaction is lost, for every n. The repeated request has no token by which DynamoDB could
// recognize it. It finds the items of the first request, and the instance ends as without the loss.
func TestTransactions_responseIsLost_changesNothing(t *testing.T) {
	t.Parallel()
	var lost atomic.Int64
	t.Run("scenarios", func(t *testing.T) {
		t.Parallel()
		for i, s := range scenarios() {
			t.Run(fmt.Sprint(i, " ", s.name), func(t *testing.T) {
				t.Parallel()
				for n := int64(1); loseResponseAt(t, s, n); n++ {
					lost.Add(1)
				}
			})
		}
	})
	t.Cleanup(func() {
		if n := lost.Load(); n < 100 {
			t.Errorf("got %d lost responses, want at least 100", n)
		}
	})
}

// loseResponseAt runs a scenario in which the response to the n-th transaction is lost. It reports whether there was
// such a transaction.
func loseResponseAt(t *testing.T, s scenario, n int64) (lost bool) {
	t.Helper()
	var transactions atomic.Int64
	intercept := func(_ context.Context, c simaws.Call, next func() error) error {
		err := next()
		tx, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
		if !ok || err != nil || transactions.Add(1) != n {
			return err
		}
		tx.ClientRequestToken = nil
		return &ddbtypes.RequestLimitExceeded{Message: aws.String("the response was lost")}
	}
	inBubble(t, simhub.Options{Environments: 2, Rollup: 1, Intercept: intercept}, func(ctx context.Context, h *hub) {
		in := h.start(s.name, s.input)
		if s.meanwhile != nil {
			s.meanwhile(h, in)
		}
		if end := h.finish(in); end.Kind != history.OrchestrationCompleted ||
			s.want != "" && string(end.Output) != s.want {
			t.Errorf("transaction %d: ended with %s %s, want %s", n, end.String(), end.Output, s.want)
		}
		if err := h.CheckIdle(ctx); err != nil {
			t.Errorf("transaction %d: %v", n, err)
		}
		h.wantInstances(s.instances)
	})
	return transactions.Load() >= n
}

// crashAt runs a scenario with a crash at the n-th call of a function. It reports whether there was such a call.
func crashAt(t *testing.T, s scenario, n int64, after bool, o simhub.Options) (crashed bool) {
	t.Helper()
	intercept, calls := simhub.CrashAt(n, after)
	o.Intercept = intercept
	o.Tasks = &simhub.TaskMonitor{}
	inBubble(t, o, func(ctx context.Context, h *hub) {
		in := h.start(s.name, s.input)
		if s.meanwhile != nil {
			s.meanwhile(h, in)
		}
		end := h.finish(in)
		if end.Kind != history.OrchestrationCompleted || s.want != "" && string(end.Output) != s.want {
			t.Errorf("crash at call %d: ended with %s %s, want %s", n, end.String(), end.Output, s.want)
		}
		if status, err := h.Provider.ReadInstance(ctx, in.InstanceID); err != nil {
			t.Errorf("crash at call %d: got error %v", n, err)
		} else if s.name == "statuses" && string(status.CustomStatus) != s.want ||
			s.name == "inline-medley" && string(status.CustomStatus) != `"done"` {
			t.Errorf("crash at call %d: custom status %s", n, status.CustomStatus)
		}
		if err := h.CheckIdle(ctx); err != nil {
			t.Errorf("crash at call %d: %v", n, err)
		}
		h.wantInstances(s.instances)
	})
	return calls.Load() >= n
}
