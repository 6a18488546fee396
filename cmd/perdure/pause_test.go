package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
)

// mappings simulates the event source mappings of Lambda. A change of state takes three polls.
type mappings struct {
	all     []lambdatypes.EventSourceMappingConfiguration
	polls   map[string]int // the number of polls until the change of a mapping completes
	crashes int            // the number of the update that fails; 0 for none
	sent    int
	// deployment, if not nil, returns the error of GetEventSourceMapping.
	deployment func(uuid string) error
	// changes counts the changes of state. Its value is the LastModified time in seconds.
	changes int64
}

// set changes the state of a mapping.
func (m *mappings) set(uuid *string, state string) {
	c := m.find(uuid)
	m.changes++
	c.State, c.LastModified = &state, aws.Time(time.Unix(m.changes, 0))
}

func (m *mappings) add(uuid, arn, state string) {
	m.all = append(m.all, lambdatypes.EventSourceMappingConfiguration{
		UUID: &uuid, EventSourceArn: &arn, State: &state,
		FunctionArn: aws.String("arn:aws:lambda:eu-north-1:1:function:perdure-test-" + uuid),
	})
}

func (m *mappings) find(uuid *string) *lambdatypes.EventSourceMappingConfiguration {
	return &m.all[slices.IndexFunc(m.all, func(c lambdatypes.EventSourceMappingConfiguration) bool {
		return *c.UUID == *uuid
	})]
}

func (m *mappings) ListEventSourceMappings(
	_ context.Context, in *lambda.ListEventSourceMappingsInput, _ ...func(*lambda.Options),
) (*lambda.ListEventSourceMappingsOutput, error) {
	out := &lambda.ListEventSourceMappingsOutput{}
	for _, c := range m.all {
		if *c.EventSourceArn == *in.EventSourceArn {
			out.EventSourceMappings = append(out.EventSourceMappings, c)
		}
	}
	return out, nil
}

func (m *mappings) GetEventSourceMapping(
	_ context.Context, in *lambda.GetEventSourceMappingInput, _ ...func(*lambda.Options),
) (*lambda.GetEventSourceMappingOutput, error) {
	c := m.find(in.UUID)
	if m.deployment != nil {
		return nil, m.deployment(*in.UUID)
	}
	if m.polls[*in.UUID]--; m.polls[*in.UUID] == 0 {
		m.settle(in.UUID)
	}
	return &lambda.GetEventSourceMappingOutput{UUID: c.UUID, State: c.State, LastModified: c.LastModified}, nil
}

func (m *mappings) UpdateEventSourceMapping(
	_ context.Context, in *lambda.UpdateEventSourceMappingInput, _ ...func(*lambda.Options),
) (*lambda.UpdateEventSourceMappingOutput, error) {
	c := m.find(in.UUID)
	switch m.sent++; {
	case m.sent == m.crashes:
		return nil, errors.New("the network is away")
	case strings.HasSuffix(*c.State, "ing"):
		return nil, &lambdatypes.ResourceInUseException{}
	}
	m.set(in.UUID, map[bool]string{true: "Enabling", false: "Disabling"}[*in.Enabled])
	m.polls[*in.UUID] = 3
	return &lambda.UpdateEventSourceMappingOutput{}, nil
}

// settle completes the pending change of a mapping.
func (m *mappings) settle(uuid *string) {
	if state := *m.find(uuid).State; strings.HasSuffix(state, "ing") {
		m.set(uuid, strings.TrimSuffix(state, "ing")+"ed")
		m.polls[*uuid] = 0
	}
}

func (m *mappings) states() (states []string) {
	for _, c := range m.all {
		states = append(states, *c.State)
	}
	return states
}

// deployed adds mappings to the tool's hub. The mappings are for the inbox, for work (one enabled, one disabled), for
// timers, and for a queue of another hub.
func deployed(h *tool, hub *simhub.Hub) *mappings {
	where := hub.Provider.Config()
	m := &mappings{polls: map[string]int{}}
	m.add("orchestrator", hub.Cloud.Queues.ARN(where.InboxURL), "Enabled")
	m.add("worker", hub.Cloud.Queues.ARN(where.WorkQueues["default"]), "Enabled")
	m.add("disabled", hub.Cloud.Queues.ARN(where.WorkQueues["default"]), "Disabled")
	m.add("renewer", hub.Cloud.Queues.ARN(where.TimersURL), "Enabled")
	m.add("another-hubs", "arn:aws:sqs:eu-north-1:1:another", "Enabled")
	h.adminHub = &hubadmin.Admin{
		Config: where, Lambda: m, Table: hub.Cloud.Table, Queues: hub.Cloud.Queues, Sleep: waitFor, Now: time.Now,
	}
	return m
}

// A hub with canary deployments maps its queues to function aliases. The pause command prints the function name without
// the alias.
func TestPause_mappingToAlias_printsFunctionName(t *testing.T) {
	t.Parallel()
	onAWSInMemory(t, func(_ context.Context, h *tool, hub *simhub.Hub) {
		m := deployed(h, hub)
		m.all[0].FunctionArn = aws.String("arn:aws:lambda:eu-north-1:1:function:perdure-test-orchestrator:live")
		got := h.mustRun("pause", "--yes")
		if !strings.Contains(got, " perdure-test-orchestrator ") || !strings.Contains(got, " perdure-test-worker ") {
			t.Errorf("pause printed\n%s", got)
		}
	})
}

func TestResume_pausedHub_restoresMappings(t *testing.T) {
	t.Parallel()
	onAWSInMemory(t, func(ctx context.Context, h *tool, hub *simhub.Hub) {
		m := deployed(h, hub)
		want := func(states ...string) {
			h.t.Helper()
			if got := m.states(); !slices.Equal(got, states) {
				h.t.Errorf("the mappings are %v, want %v", got, states)
			}
		}
		h.in = "no\n"
		if code := h.run(ctx, "pause"); code != cli.CodeError || m.sent > 0 {
			h.t.Errorf("pause without confirmation: exit %d", code)
		}
		h.wantError(cli.CodeError, "--yes applies to a hub", "pause", "order-7", "--yes")
		h.wantError(cli.CodeError, "--all applies to a hub", "resume", "order-7", "--all")
		h.wantError(cli.CodeError, "--message requires an instance ID", "pause", "--message", "why")
		h.wantError(cli.CodeError, "unexpected argument", "pause", "order-7", "order-8")
		h.wantError(cli.CodeError, "use --all to enable", "resume")

		m.crashes = 2 // the update of the second mapping fails
		h.wantError(cli.CodeError, "repeat perdure pause", "pause", "--yes")
		h.mustRun("start", "hello", "--id", "one") // a partly paused hub accepts the start
		records, err := hub.Provider.FetchRecords(ctx, "inbox")
		if err != nil || len(records) != 1 {
			h.t.Fatal(records, err)
		}
		if got := h.mustRun("pause", "--yes"); strings.Count(got, "Disabled") != 4 ||
			!strings.Contains(h.err.String(), "still being processed: inbox about 1") {
			h.t.Errorf("printed %s%s", got, h.err.String())
		}
		want("Disabled", "Disabled", "Disabled", "Disabled", "Enabled")

		m.crashes = m.sent + 2
		h.wantError(cli.CodeError, "repeat perdure resume", "resume")
		if got := h.mustRun("resume", "--json"); !strings.Contains(got,
			`{"queue":"inbox","uuid":"orchestrator","function":"perdure-test-orchestrator","state":"Enabled"}`) {
			h.t.Errorf("printed %s", got)
		}
		want("Enabled", "Enabled", "Disabled", "Enabled", "Enabled")
		if !strings.Contains(h.err.String(),
			"left disabled, because perdure pause did not disable them: disabled of perdure-test-disabled") {
			h.t.Errorf("printed %s", h.err.String())
		}
		h.wantError(cli.CodeError, "use --all to enable", "resume")
		h.mustRun("resume", "--all")
		want("Enabled", "Enabled", "Enabled", "Enabled", "Enabled")
	})
}

func TestPause_mappingNeverSettles_timesOut(t *testing.T) {
	t.Parallel()
	onAWSInMemory(t, func(_ context.Context, h *tool, hub *simhub.Hub) {
		m := deployed(h, hub)
		*m.all[0].State = "Updating"
		began := time.Now()
		h.wantError(cli.CodeError, "mapping orchestrator is Updating", "pause", "--yes")
		if took := time.Since(began); took != cli.DeploymentTimeout {
			h.t.Errorf("pause took %v", took)
		}
	})
}

// A resume fails after it has enabled the last mapping, and the operator does not repeat the command, because all
// mappings are enabled. An operator disables a mapping later on purpose. The next pause and resume do not enable this
// mapping.
func TestResume_diedAfterLastMapping_mappingDisabledLaterStaysDisabled(t *testing.T) {
	t.Parallel()
	onAWSInMemory(t, func(_ context.Context, h *tool, hub *simhub.Hub) {
		m := deployed(h, hub)
		h.mustRun("pause", "--yes")
		m.crashes = m.sent + 3 // the update of the last of three mappings is applied, but the response is lost
		h.wantError(cli.CodeError, "repeat perdure resume", "resume")
		m.set(aws.String("renewer"), "Enabled") // Lambda has applied the update
		if got := m.states(); !slices.Equal(got, asBefore) {
			h.t.Fatal(got)
		}
		m.crashes = 0
		staysDisabled(h, m)
	})
}

// staysDisabled disables the worker's mapping, and checks that a pause and a resume do not enable the mapping.
func staysDisabled(h *tool, m *mappings) {
	h.t.Helper()
	m.set(aws.String("worker"), "Disabled")
	h.mustRun("pause", "--yes")
	h.mustRun("resume")
	if got := m.states(); !slices.Equal(got, []string{"Enabled", "Disabled", "Disabled", "Enabled", "Enabled"}) {
		h.t.Errorf("the mappings are %v; want the mapping of the worker to stay Disabled", got)
	}
}

// resumeDiesWaiting runs a resume whose process crashes while Lambda enables the mappings.
func resumeDiesWaiting(ctx context.Context, h *tool) error {
	crashing := *h.adminHub
	crashing.Sleep = func(context.Context, time.Duration) error { return errors.New("the process has died") }
	_, err := crashing.Resume(ctx, false)
	return err
}

// The process of a resume crashes while Lambda enables the mappings. Lambda enables all mappings. A mapping that an
// operator disables later stays disabled.
func TestResume_diedWhileWaiting_mappingDisabledLaterStaysDisabled(t *testing.T) {
	t.Parallel()
	onAWSInMemory(t, func(ctx context.Context, h *tool, hub *simhub.Hub) {
		m := deployed(h, hub)
		h.mustRun("pause", "--yes")
		if err := resumeDiesWaiting(ctx, h); err == nil {
			h.t.Fatal("Resume succeeded; want an error")
		}
		for i := range m.all {
			m.all[i].State = aws.String(asBefore[i]) // Lambda has enabled all mappings
		}
		staysDisabled(h, m)
	})
}

// The process of a resume crashes while Lambda enables the mappings. The next resume waits for these mappings, even if
// the table no longer contains them.
func TestResume_mappingsAreBeingEnabled_waitsForThem(t *testing.T) {
	t.Parallel()
	onAWSInMemory(t, func(ctx context.Context, h *tool, hub *simhub.Hub) {
		m := deployed(h, hub)
		h.mustRun("pause", "--yes")
		if err := resumeDiesWaiting(ctx, h); err == nil || !slices.Contains(m.states(), "Enabling") {
			h.t.Fatal(m.states(), err)
		}
		h.mustRun("resume")
		if got := m.states(); !slices.Equal(got, asBefore) {
			h.t.Errorf("the mappings are %v", got)
		}
	})
}

// The table contains mappings that no longer exist. Either the stack has replaced the mappings, or the table was
// restored to an earlier pause.
func TestResume_mappingsWereReplaced_isAnError(t *testing.T) {
	t.Parallel()
	onAWSInMemory(t, func(_ context.Context, h *tool, hub *simhub.Hub) {
		m := deployed(h, hub)
		h.mustRun("pause", "--yes")
		for _, n := range []int{1, 3} {
			m.all[n].UUID = aws.String("new-" + *m.all[n].UUID)
		}
		for range 2 { // a failed resume keeps the mappings in the table
			h.wantError(cli.CodeError, "renewer, worker; the other mappings are enabled; use --all to enable all",
				"resume")
		}
		if got := m.states(); !slices.Equal(got, []string{"Enabled", "Disabled", "Disabled", "Disabled", "Enabled"}) {
			h.t.Errorf("the mappings are %v", got)
		}
		h.mustRun("resume", "--all")
		h.wantError(cli.CodeError, "use --all to enable", "resume")
		if slices.Contains(m.states(), "Disabled") {
			h.t.Errorf("the mappings are %v", m.states())
		}
	})
}

// Two operators run a pause P and a resume R concurrently. The table stores the set S of paused mappings with a token.
// P renews the token with each write. R compares the token whenever R removes a mapping from S. The interleavings are:
//   - P writes S after R enables a mapping and before R removes the mapping from S. R must not remove the mapping.
//   - P reads a mapping as disabled before R enables the mapping. P returns an error, because not all are disabled.
//   - P has added a mapping to S but not disabled it yet, and R removes the enabled mapping from S. P adds it again.
//   - R completes between two calls of P, or P completes between two calls of R.
//
// The test runs one operation completely at each call of the other. Regardless of their results, one more resume
// enables exactly the mappings that were enabled before.
func TestPauseAndResume_concurrent_loseNoMapping(t *testing.T) {
	t.Parallel()
	ofMeanwhile := map[string]func(ctx context.Context, h *hubadmin.Admin) error{
		"pause":  func(ctx context.Context, h *hubadmin.Admin) error { _, err := h.Pause(ctx); return err },
		"resume": func(ctx context.Context, h *hubadmin.Admin) error { _, err := h.Resume(ctx, false); return err },
	}
	for first, second := range map[string]string{"pause": "resume", "resume": "pause"} {
		for _, paused := range []bool{false, true} {
			for n, ran := 1, true; ran; n++ {
				t.Run(fmt.Sprintf("%s in call %d of %s, paused before: %t", second, n, first, paused),
					func(t *testing.T) {
						onAWSInMemory(t, func(ctx context.Context, h *tool, hub *simhub.Hub) {
							ctx, stop := context.WithTimeout(ctx, time.Hour)
							defer stop()
							m := deployed(h, hub)
							other := *h.adminHub
							if paused {
								h.mustRun("pause", "--yes")
							}
							calls := 0
							at := func() error {
								if calls++; calls == n {
									_ = ofMeanwhile[second](ctx, &other) // may report the concurrent operation
								}
								return nil
							}
							one := other
							one.Table, one.Lambda = tableAt{one.Table, at}, lambdaAt{one.Lambda, at}
							limited, stop := context.WithTimeout(ctx, cli.DeploymentTimeout)
							defer stop()
							gotText := ofMeanwhile[first](limited, &one)
							if ran = calls >= n; first == "pause" && gotText == nil &&
								slices.ContainsFunc(m.states()[:4], func(s string) bool {
									return s != "Disabled"
								}) {
								h.t.Errorf("Pause succeeded, but the mappings are %v; want Disabled", m.states())
							}
							if _, err := other.Resume(ctx, false); err != nil && !errors.Is(err, provider.ErrNotFound) {
								h.t.Error(err)
							}
							if got := m.states(); !slices.Equal(got, asBefore) {
								h.t.Errorf("after one more resume, the mappings are %v", got)
							}
						})
					})
			}
		}
	}
}

// asBefore contains the initial states of the mappings that deployed adds.
var asBefore = []string{"Enabled", "Enabled", "Disabled", "Enabled", "Enabled"}

// tableAt calls at before each call of the table. If at fails, the call returns that error.
type tableAt struct {
	dynamo.TableAPI

	at func() error
}

func (a tableAt) GetItem(
	ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options),
) (*dynamodb.GetItemOutput, error) {
	if err := a.at(); err != nil {
		return nil, err
	}
	return a.TableAPI.GetItem(ctx, in, o...)
}

func (a tableAt) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	if err := a.at(); err != nil {
		return nil, err
	}
	return a.TableAPI.UpdateItem(ctx, in, o...)
}

// lambdaAt calls at before each call of Lambda. If at fails, the call returns that error.
type lambdaAt struct {
	hubadmin.LambdaAPI

	at func() error
}

func (a lambdaAt) ListEventSourceMappings(
	ctx context.Context, in *lambda.ListEventSourceMappingsInput, o ...func(*lambda.Options),
) (*lambda.ListEventSourceMappingsOutput, error) {
	if err := a.at(); err != nil {
		return nil, err
	}
	return a.LambdaAPI.ListEventSourceMappings(ctx, in, o...)
}

func (a lambdaAt) GetEventSourceMapping(
	ctx context.Context, in *lambda.GetEventSourceMappingInput, o ...func(*lambda.Options),
) (*lambda.GetEventSourceMappingOutput, error) {
	if err := a.at(); err != nil {
		return nil, err
	}
	return a.LambdaAPI.GetEventSourceMapping(ctx, in, o...)
}

func (a lambdaAt) UpdateEventSourceMapping(
	ctx context.Context, in *lambda.UpdateEventSourceMappingInput, o ...func(*lambda.Options),
) (*lambda.UpdateEventSourceMappingOutput, error) {
	if err := a.at(); err != nil {
		return nil, err
	}
	return a.LambdaAPI.UpdateEventSourceMapping(ctx, in, o...)
}

// Lambda rejects an update with ResourceInUseException although the mapping is in a stable state, because the reported
// state is stale.
func TestPause_mappingInUse_retriesOncePerSecond(t *testing.T) {
	t.Parallel()
	onAWSInMemory(t, func(ctx context.Context, h *tool, hub *simhub.Hub) {
		s := &inUse{mappings: deployed(h, hub), left: 10_000}
		h.adminHub.Lambda = s
		began := time.Now()
		code := h.run(ctx, "pause", "--yes")
		if took := time.Since(began); code == 0 || s.calls > 3*int(took/time.Second)+3 {
			h.t.Errorf("exit %d: %d updates of 3 mappings in %v; want an error, and one per second and mapping", code,
				s.calls, took)
		}
	})
}

// inUse rejects the first updates. left is the number of updates to reject.
type inUse struct {
	*mappings

	left, calls int
}

func (s *inUse) UpdateEventSourceMapping(
	ctx context.Context, in *lambda.UpdateEventSourceMappingInput, o ...func(*lambda.Options),
) (*lambda.UpdateEventSourceMappingOutput, error) {
	s.calls++
	if s.left--; s.left >= 0 {
		return nil, &lambdatypes.ResourceInUseException{}
	}
	return s.mappings.UpdateEventSourceMapping(ctx, in, o...)
}

// Lambda takes 20 seconds to disable each of 24 mappings. The pause command waits for all mappings concurrently.
func TestPause_manyMappings_waitsConcurrently(t *testing.T) {
	t.Parallel()
	onAWSInMemory(t, func(_ context.Context, h *tool, hub *simhub.Hub) {
		m := deployed(h, hub)
		for n := range 20 {
			m.add(strings.Repeat("q", n+1), hub.Cloud.Queues.ARN(h.adminHub.Config.WorkQueues["default"]), "Enabled")
		}
		h.adminHub.Lambda = &slowly{m}
		began := time.Now()
		h.mustRun("pause", "--yes")
		if took := time.Since(began); took > 25*time.Second {
			h.t.Errorf("pause took %v", took)
		}
	})
}

// slowly simulates mappings whose changes take 20 polls.
type slowly struct{ *mappings }

func (s *slowly) UpdateEventSourceMapping(
	ctx context.Context, in *lambda.UpdateEventSourceMappingInput, o ...func(*lambda.Options),
) (*lambda.UpdateEventSourceMappingOutput, error) {
	out, err := s.mappings.UpdateEventSourceMapping(ctx, in, o...)
	if err == nil {
		s.polls[*in.UUID] = 20
	}
	return out, err
}

// waitFor sleeps on the fake clock of the synctest bubble.
func waitFor(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
