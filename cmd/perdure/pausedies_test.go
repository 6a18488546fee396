package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventstypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
)

// errDead is the error of all calls of a dead process. They do not reach AWS.
var errDead = errors.New("the process has died")

// settled completes the pending changes of Lambda.
func (m *mappings) settled() {
	for i := range m.all {
		m.settle(m.all[i].UUID)
	}
}

// A pause records a mapping that a concurrent resume finds enabled. Then the pause disables the mapping and dies. The
// record remains. The test runs a complete resume at each call of a pause, and the pause dies at each of its later
// calls. A resume after the end of the pause enables exactly the mappings that were enabled before.
func TestPause_diesAfterConcurrentResume_losesNoMapping(t *testing.T) {
	t.Parallel()
	for _, paused := range []bool{false, true} {
		for at, ran := 1, true; ran; at++ {
			for after, died := 0, true; died && ran; after += 1 + after/4 { // most are soon after
				t.Run(fmt.Sprintf("resume in call %d, death %d later, paused before: %t", at, after, paused),
					func(t *testing.T) {
						onAWSInMemory(t, func(ctx context.Context, h *tool, hub *simhub.Hub) {
							m := deployed(h, hub)
							if paused {
								h.mustRun("pause", "--yes")
							}
							whole, calls := *h.adminHub, 0
							crashing := whole
							step := func() error {
								if calls++; calls == at {
									_, _ = whole.Resume(ctx, false) // may report the running pause
								}
								if calls > at+after {
									return errDead
								}
								return nil
							}
							crashing.Table, crashing.Lambda = tableAt{whole.Table, step}, lambdaAt{whole.Lambda, step}
							limited, stop := context.WithTimeout(ctx, cli.DeploymentTimeout)
							defer stop()
							_, _ = crashing.Pause(limited)
							ran, died = calls >= at, calls > at+after
							m.settled()

							time.Sleep(11 * time.Minute)
							if _, err := whole.Resume(ctx, false); err != nil && !errors.Is(err, provider.ErrNotFound) {
								h.t.Error(err)
							}
							if got := m.states(); !slices.Equal(got, asBefore) {
								h.t.Errorf("after another resume, the mappings are %v", got)
							}
							staysDisabled(h, m)
						})
					})
			}
		}
	}
}

// The process of a resume crashes at each of its calls. For example, it crashes after the response of Lambda and before
// it removes the record of the mapping. The next resume enables the mappings that were enabled before. If an operator
// disables one of them instead, a later pause and resume leave it disabled.
func TestResume_diesAtAnyCall_nextResumeRestoresMappings(t *testing.T) {
	t.Parallel()
	for _, concurrent := range []bool{false, true} {
		for at, died := 1, true; died; at++ {
			t.Run(fmt.Sprintf("at call %d, concurrent change: %t", at, concurrent), func(t *testing.T) {
				onAWSInMemory(t, func(ctx context.Context, h *tool, hub *simhub.Hub) {
					m := deployed(h, hub)
					h.mustRun("pause", "--yes")
					whole, calls := *h.adminHub, 0
					crashing := whole
					step := func() error {
						if calls++; calls >= at {
							return errDead
						}
						return nil
					}
					crashing.Table, crashing.Lambda = tableAt{whole.Table, step}, lambdaAt{whole.Lambda, step}
					limited, stop := context.WithTimeout(ctx, cli.DeploymentTimeout)
					defer stop()
					_, _ = crashing.Resume(limited, false)
					died = calls >= at
					m.settled()

					want := slices.Clone(asBefore)
					if worker := m.find(aws.String("worker")); concurrent && *worker.State == "Enabled" {
						m.set(worker.UUID, "Disabled")
						want[1] = "Disabled"
					}
					for _, then := range [][]string{{"resume"}, {"pause", "--yes"}, {"resume"}} {
						if code := h.run(ctx, then...); code != 0 && then[0] == "pause" {
							h.t.Errorf("%v: exit %d: %s", then, code, h.err.String())
						}
					}
					if got := m.states(); !slices.Equal(got, want) {
						h.t.Errorf("the mappings are %v, want %v", got, want)
					}
				})
			})
		}
	}
}

// A resume after an interrupted pause warns that the pause may still be running. A later resume does not warn.
func TestResume_pauseDied_warnsThatPauseMayBeRunning(t *testing.T) {
	t.Parallel()
	onAWSInMemory(t, func(ctx context.Context, h *tool, hub *simhub.Hub) {
		m := deployed(h, hub)
		crashing := *h.adminHub
		calls := 0
		crashing.Lambda = lambdaAt{h.adminHub.Lambda, func() error {
			if calls++; calls > 8 {
				return errDead
			}
			return nil
		}}
		crashing.Table = tableAt{h.adminHub.Table, func() error {
			if calls > 8 {
				return errDead
			}
			return nil
		}}
		if _, err := crashing.Pause(ctx); !errors.Is(err, errDead) {
			h.t.Fatal(err)
		}
		m.settled()
		h.wantError(cli.CodeError, "if the pause is still running, repeat perdure resume", "resume")
		if got := m.states(); !slices.Equal(got, asBefore) {
			h.t.Errorf("the mappings are %v", got)
		}
		time.Sleep(11 * time.Minute)
		h.mustRun("resume")
		h.wantError(cli.CodeError, "use --all to enable", "resume")
	})
}

// rules simulates the rules of EventBridge, by the ARN of their target.
type rules map[string]map[string]eventstypes.RuleState

func (r rules) ListRuleNamesByTarget(
	_ context.Context, in *eventbridge.ListRuleNamesByTargetInput, _ ...func(*eventbridge.Options),
) (*eventbridge.ListRuleNamesByTargetOutput, error) {
	out := &eventbridge.ListRuleNamesByTargetOutput{}
	for name := range r[*in.TargetArn] {
		out.RuleNames = append(out.RuleNames, name)
	}
	return out, nil
}

func (r rules) all(name string, do func(of map[string]eventstypes.RuleState)) {
	for _, of := range r {
		if _, ok := of[name]; ok {
			do(of)
		}
	}
}

func (r rules) DescribeRule(
	_ context.Context, in *eventbridge.DescribeRuleInput, _ ...func(*eventbridge.Options),
) (*eventbridge.DescribeRuleOutput, error) {
	out := &eventbridge.DescribeRuleOutput{Name: in.Name}
	r.all(*in.Name, func(of map[string]eventstypes.RuleState) { out.State = of[*in.Name] })
	return out, nil
}

func (r rules) EnableRule(
	_ context.Context, in *eventbridge.EnableRuleInput, _ ...func(*eventbridge.Options),
) (*eventbridge.EnableRuleOutput, error) {
	r.all(*in.Name, func(of map[string]eventstypes.RuleState) { of[*in.Name] = eventstypes.RuleStateEnabled })
	return &eventbridge.EnableRuleOutput{}, nil
}

func (r rules) DisableRule(
	_ context.Context, in *eventbridge.DisableRuleInput, _ ...func(*eventbridge.Options),
) (*eventbridge.DisableRuleOutput, error) {
	r.all(*in.Name, func(of map[string]eventstypes.RuleState) { of[*in.Name] = eventstypes.RuleStateDisabled })
	return &eventbridge.DisableRuleOutput{}, nil
}

// pause disables the rule of the sweeper, and resume enables it unless it was disabled before.
func TestPause_sweeperRule_isDisabledUntilResume(t *testing.T) {
	t.Parallel()
	const renewer = "arn:aws:lambda:eu-north-1:1:function:perdure-test-renewer"
	for target, was := range map[string]eventstypes.RuleState{
		renewer: eventstypes.RuleStateEnabled, renewer + ":live": eventstypes.RuleStateDisabled,
	} {
		t.Run(target+" "+string(was), func(t *testing.T) {
			t.Parallel()
			onAWSInMemory(t, func(ctx context.Context, h *tool, hub *simhub.Hub) {
				healthy(h, hub)
				m := h.adminHub.Lambda.(*mappings)
				m.find(aws.String("renewer")).FunctionArn = &target
				watch := rules{
					target: {"watch": was},
					"arn:aws:lambda:eu-north-1:1:function:another": {"another": eventstypes.RuleStateEnabled},
				}
				h.adminHub.Events = hubadmin.EventBridgeAPI(watch)
				h.mustRun("pause", "--yes")
				if got := watch[target]["watch"]; got != eventstypes.RuleStateDisabled {
					h.t.Errorf("the rule of the sweeper is %s while the hub is paused", got)
				}
				wantDoctor(ctx, h, "sweeper's rule/watch")
				h.mustRun("resume")
				if got := watch[target]["watch"]; got != was {
					h.t.Errorf("the rule of the sweeper is %s after the resume, was %s", got, was)
				}
				if was == eventstypes.RuleStateDisabled {
					wantDoctor(ctx, h, "the state is Disabled (not by perdure pause)")
				}
				h.mustRun("resume", "--all")
				h.mustRun("doctor")
				if got := watch["arn:aws:lambda:eu-north-1:1:function:another"]["another"]; got != eventstypes.RuleStateEnabled {
					h.t.Errorf("another rule is %s", got)
				}
			})
		})
	}
}
