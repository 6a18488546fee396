package selftest

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/selftest/probes"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
)

// hub tests a deployed hub.
type hub struct {
	client     *client.Client
	admin      *admin.Client
	deployment *hubadmin.Admin
	probes     *probes.Probes
	progress   io.Writer
	now        func() time.Time
	sleep      func(ctx context.Context, d time.Duration) error
}

func (h *hub) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(h.progress, format+"\n", args...) // the tests do not depend on their messages
}

// openHub connects to a deployed hub.
func openHub(ctx context.Context, env *cli.Env, d *deployed) (*hub, error) {
	clients, err := env.OpenHub(ctx, d.run.hub())
	if err != nil {
		return nil, err
	}
	operated, err := env.OpenDeployment(ctx, d.run.hub())
	if err != nil {
		return nil, err
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("load AWS settings: %w", err)
	}
	return &hub{
		client: clients.Client, admin: clients.Admin, deployment: operated,
		progress: term.LineWriter{Writer: env.Stderr}, now: env.Now, sleep: env.Sleep, probes: &probes.Probes{
			Clients: dynamo.FromConfig(cfg), Hub: operated.Config, Now: env.Now, Sleep: env.Sleep,
			StandardURL: d.physical(probeQueue), FIFOURL: d.physical(probeFIFO), TableName: d.physical(probeTable),
		},
	}, nil
}

// test runs the scenarios, the measurements and the checks. Failed scenarios and checks are not errors.
func (h *hub) test(ctx context.Context, d *deployed, report *Report) error {
	unit := tick
	if d.short {
		unit = shortTick
	}
	report.Scenarios = h.runScenarios(ctx, selected(d.short), unit)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := h.measure(ctx, d.short, report); err != nil {
		return err
	}
	report.Checks = h.runChecks(ctx, append(h.hubChecks(report), h.probes.All()...))
	report.Unchecked = unchecked(report.Checks)
	return context.Cause(ctx)
}
