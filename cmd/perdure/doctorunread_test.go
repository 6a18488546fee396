package main

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/cmd/perdure/internal/operations"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

// Without permission to read the table, doctor does not report disabled mappings as not paused by perdure pause. The
// fix, resume --all, would also enable mappings that other operators disabled.
func TestDoctor_pauseRecordIsUnreadable_causeIsUnknown(t *testing.T) {
	t.Parallel()
	var refuses atomic.Bool
	refused := func(_ context.Context, c simaws.Call, next func() error) error {
		if in, ok := c.Input.(*dynamodb.GetItemInput); ok &&
			in.Key["sk"].(*types.AttributeValueMemberS).Value == "paused" && refuses.Load() {
			return errRefused
		}
		return next()
	}
	onInterceptedAWS(t, refused, func(ctx context.Context, h *tool, hub *simhub.Hub) {
		healthy(h, hub)
		h.mustRun("pause", "--yes")
		refuses.Store(true)
		code := h.run(ctx, "doctor")
		got := h.out.String()
		if code != operations.CodeProblems || strings.Contains(got, "not by perdure pause") ||
			strings.Count(got, "the cause is unknown because the pause record could not be read") != 4 {
			h.t.Errorf("doctor exits with %d: %s", code, got)
		}
	})
}
