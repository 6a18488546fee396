package dispatch_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// Interleaving: the response to the write of the instance is lost. Before the write is retried, another message wakes
// the instance, and it continues as new. The first execution must remain in history, because a redispatch may need its
// outputs.
func TestR11_lostResponseAfterContinueAsNew_keepsFirstExecution(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		lost := false
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if !createsInstance(c) || lost {
				return next()
			}
			lost = true
			if err := next(); err != nil {
				return err
			}
			h.send(provider.Message{Kind: provider.MessageWake, InstanceID: "i-1"})
			h.finish(must(h.Provider.ReadInstance(ctx, "i-1")))
			return &ddbtypes.RequestLimitExceeded{Message: aws.String("response lost")}
		})
		in := h.start("again-at-once", 2)
		h.interfere(nil)
		executions := 0
		for x, err := range h.Provider.ListExecutions(ctx, "i-1") {
			if err != nil {
				t.Error(err)
			}
			executions++
			if x.Number == 1 {
				h.wantExpiringStub(x.ExecutionID, false)
			}
		}
		if in.ExecutionNumber != 3 || executions != 3 {
			t.Errorf("got execution %d and %d executions, want 3 and 3", in.ExecutionNumber, executions)
		}
	})
}

// Interleaving: the process that starts a child crashes between its two writes, or its second write fails, in each
// delivery. Each retry replaces the items of the previous one. After an hour of failures, a purge finds all remaining
// items.
func TestR11_startIsRedelivered_replacesItsEarlierTries(t *testing.T) {
	t.Parallel()
	for _, dies := range []bool{false, true} {
		inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
			h.send(startMessage(h, "c", "s1"))
			tries := 0
			h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
				switch {
				case !createsInstance(c) && c.Operation != "TransactWriteItems" || tries == 3:
					return next()
				case dies:
					tries++
					return simhub.ErrCrashed
				default:
					tries++
					return errors.New("throttled")
				}
			})
			h.serveFor(time.Hour)
			starts := map[string]bool{}
			for _, key := range h.putKeys() {
				if strings.HasSuffix(key, " h#0000000000") {
					starts[key] = true
				}
			}
			if now := h.read(provider.Instance{InstanceID: "c"}); len(starts) != 1 ||
				now.Status != provider.StatusCompleted || tries != 3 {
				t.Errorf("dies=%v: after %d tries: got status %s and %d first segments: %v",
					dies, tries, now.Status, len(starts), starts)
			}
		})
	}
}
