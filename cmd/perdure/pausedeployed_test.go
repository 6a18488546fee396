package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/internal/simhub"
)

// A resume records when a mapping was disabled, and its process crashes before Lambda receives the update. Then a
// deployment moves the mapping to an alias. This change does not mean that an operator disabled the mapping.
func TestResume_mappingChangedByDeployment_isEnabled(t *testing.T) {
	t.Parallel()
	for name, deploys := range map[string]func(*lambdatypes.EventSourceMappingConfiguration){
		"an alias": func(c *lambdatypes.EventSourceMappingConfiguration) {
			c.FunctionArn = aws.String(*c.FunctionArn + ":live")
		},
		"a batch": func(c *lambdatypes.EventSourceMappingConfiguration) { c.BatchSize = aws.Int32(1) },
		"a concurrency": func(c *lambdatypes.EventSourceMappingConfiguration) {
			c.ScalingConfig = &lambdatypes.ScalingConfig{MaximumConcurrency: aws.Int32(2)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onAWSInMemory(t, func(_ context.Context, h *tool, hub *simhub.Hub) {
				m := deployed(h, hub)
				h.mustRun("pause", "--yes")
				m.crashes = m.sent + 2
				h.wantError(cli.CodeError, "repeat perdure resume", "resume")
				m.set(aws.String("orchestrator"), "Disabled") // Lambda reports the change
				deploys(m.find(aws.String("orchestrator")))
				h.mustRun("resume")
				if got := m.states(); !slices.Equal(got, asBefore) {
					h.t.Errorf("the mappings are %v, and the output %s", got, h.err.String())
				}
			})
		})
	}
}

// While a pause disables the mappings, one of them is deleted or enabled again.
func TestPause_concurrentDeployment_isAnError(t *testing.T) {
	t.Parallel()
	onAWSInMemory(t, func(_ context.Context, h *tool, hub *simhub.Hub) {
		m := deployed(h, hub)
		m.deployment = func(string) error { return &lambdatypes.ResourceNotFoundException{} }
		h.wantError(cli.CodeError, "a deployment replaced or removed it", "pause", "--yes")
		m.deployment = nil
	})
	onAWSInMemory(t, func(_ context.Context, h *tool, hub *simhub.Hub) {
		m := deployed(h, hub)
		h.adminHub.Sleep = func(ctx context.Context, d time.Duration) error {
			if worker := m.find(aws.String("worker")); *worker.State == "Disabling" {
				m.set(worker.UUID, "Enabled") // the state in the template
				m.polls["worker"] = 0
			}
			return waitFor(ctx, d)
		}
		h.wantError(cli.CodeError, "another pause, resume or deployment", "pause", "--yes")
	})
}

// doctor reports the paused mappings, the cause of the pause, and the command that resumes them.
func TestDoctor_partlyPausedHub_namesMappingsAndFix(t *testing.T) {
	t.Parallel()
	onAWSInMemory(t, func(ctx context.Context, h *tool, hub *simhub.Hub) {
		_, m := healthy(h, hub)
		h.mustRun("pause", "--yes")
		wantDoctor(ctx, h,
			"mapping of queue inbox: orchestrator to perdure-test-orchestrator: the state is Disabled (disabled by "+
				"perdure pause)")
		wantDoctor(ctx, h, "fix: perdure resume --hub test")

		m.set(aws.String("worker"), "Enabled")
		wantDoctor(ctx, h,
			"mappings that perdure pause disabled are enabled: worker. A pause or resume was interrupted, "+
				"or a deployment enabled them. Still disabled: disabled, orchestrator, renewer")
		m.find(aws.String("worker")).UUID = aws.String("new")
		wantDoctor(ctx, h, "mappings that perdure pause disabled no longer exist: worker")
		wantDoctor(ctx, h, "perdure resume --hub test --all")
	})
	onAWSInMemory(t, func(ctx context.Context, h *tool, hub *simhub.Hub) {
		_, m := healthy(h, hub)
		m.crashes = 2
		crashing := *h.adminHub
		crashing.Table = tableAt{h.adminHub.Table, func() error {
			if m.sent > 1 {
				return errDead
			}
			return nil
		}}
		if _, err := crashing.Pause(ctx); err == nil {
			h.t.Fatal("Pause succeeded; want an error")
		}
		wantDoctor(ctx, h, "did not complete: it is still running or was interrupted")
		wantDoctor(ctx, h, "perdure pause --hub test to complete the pause, or perdure resume --hub test after ")
		if !strings.Contains(h.out.String(), `pause record (table item pk "hub", sk "paused")`) {
			h.t.Errorf("the output does not name the pause record:\n%s", h.out.String())
		}
	})
}
