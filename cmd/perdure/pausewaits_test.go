package main

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/perdure/perdure/internal/simhub"
)

// refusesFor rejects reads and updates of mappings until a given time.
type refusesFor struct {
	*mappings

	until time.Time
	err   error
}

func (r *refusesFor) GetEventSourceMapping(
	ctx context.Context, in *lambda.GetEventSourceMappingInput, o ...func(*lambda.Options),
) (*lambda.GetEventSourceMappingOutput, error) {
	if time.Now().Before(r.until.Add(-10 * time.Second)) {
		return nil, r.err
	}
	return r.mappings.GetEventSourceMapping(ctx, in, o...)
}

func (r *refusesFor) UpdateEventSourceMapping(
	ctx context.Context, in *lambda.UpdateEventSourceMappingInput, o ...func(*lambda.Options),
) (*lambda.UpdateEventSourceMappingOutput, error) {
	if time.Now().Before(r.until) {
		return nil, r.err
	}
	return r.mappings.UpdateEventSourceMapping(ctx, in, o...)
}

// Lambda rejects reads and updates for half a minute, because it throttles or the function is being updated. The pause
// waits.
func TestPause_lambdaRejectsCallsTemporarily_waits(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"throttled": &lambdatypes.TooManyRequestsException{}, "in progress": &lambdatypes.ResourceConflictException{},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onAWSInMemory(t, func(ctx context.Context, h *tool, hub *simhub.Hub) {
				m := deployed(h, hub)
				h.adminHub.Lambda = &refusesFor{m, time.Now().Add(30 * time.Second), err}
				began := time.Now()
				if code := h.run(ctx, "pause", "--yes"); code != 0 || time.Since(began) < 30*time.Second {
					h.t.Errorf("exit %d after %v, the mappings are %v: %s", code, time.Since(began), m.states(),
						h.err.String())
				}
			})
		})
	}
}
