package selftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/selftest/probes"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/internal/apiclient"
	"github.com/perdure/perdure/internal/awsrequest"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
)

// hub tests a deployed hub.
type hub struct {
	client *client.Client
	// api calls the HTTP API. repeatingAPI gives an idempotency key twice.
	api, repeatingAPI *client.Client
	address           string // of the HTTP API or the function URL
	admin             *admin.Client
	deployment        *hubadmin.Admin
	paused            bool // a scenario has paused the hub and not resumed it
	probes            *probes.Probes
	progress          io.Writer
	now               func() time.Time
	sleep             func(ctx context.Context, d time.Duration) error
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
	cfg.HTTPClient = awsrequest.HTTPClient{Next: cfg.HTTPClient} // a probe does not expect repeated calls
	address := d.outputs[outputAPI]
	api, err := dialAPI(&cfg, address)
	if err != nil {
		return nil, err
	}
	repeating, err := dialAPI(&cfg, address, apiclient.OptionFunc(repeatKey))
	if err != nil {
		return nil, err
	}
	checked, err := newProbes(&cfg, env, d, &operated.Config)
	if err != nil {
		return nil, err
	}
	return &hub{
		client: clients.Client, api: api, repeatingAPI: repeating, address: address,
		admin: clients.Admin, deployment: operated, probes: checked,
		progress: term.LineWriter{Writer: env.Stderr}, now: env.Now, sleep: env.Sleep,
	}, nil
}

// newProbes returns probes of the resources of a stack.
func newProbes(cfg *aws.Config, env *cli.Env, d *deployed, of *dynamo.HubConfig) (*probes.Probes, error) {
	requests, err := newRequests(cfg, env.Now)
	if err != nil {
		return nil, err
	}
	callers, err := newCallers(cfg, d, env.Now)
	if err != nil {
		return nil, err
	}
	url := func(output string) string { return strings.TrimSuffix(d.outputs[output], "/") }
	return &probes.Probes{
		Clients: dynamo.FromConfig(*cfg), Hub: *of, Now: env.Now, Sleep: env.Sleep,
		Metrics: newMetrics(cfg, env.Now), Logs: newLogs(cfg, env.Now), Requests: requests,
		TableName: d.physical(probeTable), ThrottledTableName: d.physical(probeThrottledTable),
		QueueURLs: probes.QueueURLs{
			StandardURL: d.physical(probeQueue), FIFOURL: d.physical(probeFIFO),
			RedriveURL: d.physical(probeRedrive), DeadLettersURL: d.physical(probeDead),
			PurgeURL: d.physical(probePurge), ScheduleDeadURL: d.physical(probeScheduleDead),
			RateURL: d.physical(probeRate), FairURL: d.physical(probeFair),
		},
		FunctionConfig: probes.FunctionConfig{
			MappedName: d.physical(probeFunction), CalledName: d.physical(probeCalled),
			MappedLogs: d.physical(probeFunction + "Logs"),
			MappedURL:  d.physical(probeMapped), MappedFIFOURL: d.physical(probeMappedFIFO),
			ThrottledURL: d.physical(probeThrottled), ThrottledDeadURL: d.physical(probeUndelivered),
		},
		GatewayConfig: probes.GatewayConfig{
			APIURL: url(outputProbeAPI), FunctionURL: url(outputProbeURL), StreamURL: url(outputStreamURL),
		},
		AlarmNames: probes.AlarmNames{
			BreachingAlarm: d.physical(probeBreaching), NotBreachingAlarm: d.physical(probeNotBreaching),
		},
		RuleNames: probes.RuleNames{
			EnabledRule: d.physical(probeRule), DisabledRule: d.physical(probeDisabledRule),
		},
		OperatorConfig: probes.OperatorConfig{
			Operator:   lambda.NewFromConfig(assuming(*cfg, d.outputs[outputOperator])),
			OwnMapping: d.physical(probeThrottledMapping), OtherMapping: d.physical(probeFIFOMapping),
		},
		CallerConfig: callers,
		AliasConfig: probes.AliasConfig{
			Versions: lambda.NewFromConfig(*cfg), AliasedName: d.physical(probeAliased),
			AliasedURL: d.physical(probeAliasedQueue),
		},
	}, nil
}

// newCallers returns clients with the permissions of the roles of callers.
func newCallers(cfg *aws.Config, d *deployed, now func() time.Time) (c probes.CallerConfig, err error) {
	full, partial := assuming(*cfg, d.outputs[outputCaller]), assuming(*cfg, d.outputs[outputPartialCaller])
	if c.Caller, err = newRequests(&full, now); err != nil {
		return c, err
	}
	c.CallerFunctions, c.PartialFunctions = lambda.NewFromConfig(full), lambda.NewFromConfig(partial)
	c.PartialCaller, err = newRequests(&partial, now)
	return c, err
}

// assuming returns a configuration with the credentials of a role.
func assuming(cfg aws.Config, role string) aws.Config {
	cfg.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), role))
	return cfg
}

// test runs the scenarios, the measurements and the checks. Failed scenarios and checks are not errors. The probes use
// resources of their own, so they run beside the scenarios, and those that wait for minutes until the end.
func (h *hub) test(ctx context.Context, d *deployed, report *Report) error {
	unit := tick
	if d.short {
		unit = shortTick
	}
	ctx, cancel := context.WithCancel(ctx)
	checks, slow := h.probes.All()
	waiting := h.startChecks(ctx, slow, d.short)
	defer func() {
		cancel()
		report.Checks = append(report.Checks, waiting()...)
		report.Unchecked = unchecked(report.Checks)
	}()
	probed := h.startChecks(ctx, checks, d.short)
	report.Scenarios = h.runScenarios(ctx, h.trials(d.short, unit), concurrentTests)
	report.Checks = probed()
	report.Scenarios = append(report.Scenarios, h.runScenarios(ctx, h.disruptions(d.short), 1)...)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if h.paused {
		return errors.New("the hub could not be resumed; nothing was measured")
	}
	if err := h.measure(ctx, d.short, report); err != nil {
		return err
	}
	report.Checks = append(h.runChecks(ctx, h.hubChecks(report), d.short), report.Checks...)
	waiting()
	return context.Cause(ctx)
}

// startChecks runs groups of checks concurrently. The returned function waits for their results.
func (h *hub) startChecks(ctx context.Context, groups [][]probes.Check, short bool) func() []CheckResult {
	results := make([][]CheckResult, len(groups))
	var running sync.WaitGroup
	for i, checks := range groups {
		running.Go(func() { results[i] = h.runChecks(ctx, checks, short) })
	}
	return func() []CheckResult {
		running.Wait()
		return slices.Concat(results...)
	}
}
