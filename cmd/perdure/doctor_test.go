package main

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/cmd/perdure/internal/operations"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// described simulates the DynamoDB operations that describe a table.
type described struct {
	sort     string
	indexes  []string
	ttl      types.TimeToLiveStatus
	backups  types.PointInTimeRecoveryStatus
	refusing bool
}

var errRefused = errors.New("AccessDeniedException: not authorized")

func (d *described) DescribeTable(
	context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options),
) (*dynamodb.DescribeTableOutput, error) {
	t := &types.TableDescription{
		TableArn: aws.String("the-table"),
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash},
			{AttributeName: &d.sort, KeyType: types.KeyTypeRange},
		},
	}
	for _, name := range d.indexes {
		t.GlobalSecondaryIndexes = append(t.GlobalSecondaryIndexes, types.GlobalSecondaryIndexDescription{
			IndexName: &name, IndexStatus: types.IndexStatusActive,
		})
	}
	return &dynamodb.DescribeTableOutput{Table: t}, nil
}

func (d *described) DescribeTimeToLive(
	context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options),
) (*dynamodb.DescribeTimeToLiveOutput, error) {
	if d.refusing {
		return nil, errRefused
	}
	return &dynamodb.DescribeTimeToLiveOutput{
		TimeToLiveDescription: &types.TimeToLiveDescription{AttributeName: aws.String("ttl"), TimeToLiveStatus: d.ttl},
	}, nil
}

func (d *described) DescribeContinuousBackups(
	context.Context, *dynamodb.DescribeContinuousBackupsInput, ...func(*dynamodb.Options),
) (*dynamodb.DescribeContinuousBackupsOutput, error) {
	return &dynamodb.DescribeContinuousBackupsOutput{ContinuousBackupsDescription: &types.ContinuousBackupsDescription{
		PointInTimeRecoveryDescription: &types.PointInTimeRecoveryDescription{PointInTimeRecoveryStatus: d.backups},
	}}, nil
}

// healthy configures the tool's hub so that doctor finds no problems.
func healthy(h *tool, hub *simhub.Hub) (*described, *mappings) {
	m := deployed(h, hub)
	*m.all[2].State = "Enabled"
	d := &described{
		sort: "sk", indexes: []string{"byCreation", "byAttention", "byDue"}, ttl: types.TimeToLiveStatusEnabled,
		backups: types.PointInTimeRecoveryStatusEnabled,
	}
	h.adminHub.Describe = d
	h.adminHub.Now = time.Now
	h.adminHub.ServerTime = func(context.Context) (time.Time, error) { return time.Now(), nil }
	f := &deployedFunctions{where: &h.adminHub.Config}
	h.adminHub.Config.PayloadBucket = "payloads"
	setExpiryRules(h, dynamo.ExpiryRule{Prefix: messagePrefix(h), Days: 60})
	h.adminHub.Functions, h.adminHub.Roles, h.adminHub.Schedules, h.adminHub.Account, h.adminHub.Instances = f, f, f, f,
		hub.Provider
	return d, m
}

// setExpiryRules sets the expiration rules of the hub's bucket.
func setExpiryRules(h *tool, rules ...dynamo.ExpiryRule) {
	h.adminHub.ExpiryRules = func(context.Context, string) ([]dynamo.ExpiryRule, error) { return rules, nil }
}

// messagePrefix returns the prefix of message payloads in the hub's bucket.
func messagePrefix(h *tool) string { return h.adminHub.Config.Name + "/m/" }

// Doctor reports lifecycle rules that expire required objects, and missing rules for objects that must expire.
func TestDoctor_wrongBucketLifecycleRules_areReported(t *testing.T) {
	t.Parallel()
	for mentions, rules := range map[string]func(h *tool) []dynamo.ExpiryRule{
		"no lifecycle rule expires objects under test/m/": func(*tool) []dynamo.ExpiryRule {
			return []dynamo.ExpiryRule{{Prefix: "other/", Days: 1}}
		},
		"expires objects under test/m/\n  impact: copies": func(h *tool) []dynamo.ExpiryRule {
			return []dynamo.ExpiryRule{{Prefix: messagePrefix(h), Filtered: true, Days: 60}}
		},
		"under test/m/ before they are 60 days old": func(h *tool) []dynamo.ExpiryRule {
			return []dynamo.ExpiryRule{{Prefix: messagePrefix(h), Days: 59}}
		},
		`deletes objects with the prefix ""`: func(*tool) []dynamo.ExpiryRule {
			return []dynamo.ExpiryRule{{Days: 60}}
		},
		`deletes objects with the prefix "test/x/00"`: func(h *tool) []dynamo.ExpiryRule {
			return []dynamo.ExpiryRule{{Prefix: messagePrefix(h), Days: 60}, {Prefix: "test/x/00", Filtered: true}}
		},
	} {
		t.Run(mentions, func(t *testing.T) {
			t.Parallel()
			onAWSInMemory(t, func(ctx context.Context, h *tool, hub *simhub.Hub) {
				healthy(h, hub)
				setExpiryRules(h, rules(h)...)
				code := h.run(ctx, "doctor")
				if got := h.out.String(); code != operations.CodeProblems ||
					strings.Count(got, "! payload store: ") != 1 || !strings.Contains(got, mentions) {
					h.t.Errorf("exit %d: %s%s", code, got, h.err.String())
				}
			})
		})
	}
}

// Doctor reports exactly the problem of each case.
func TestDoctor_problemOfTableOrQueues_isReported(t *testing.T) {
	t.Parallel()
	for mentions, breakIt := range map[string]func(h *tool, hub *simhub.Hub, d *described, m *mappings){
		`the key is "pk" and "other"`: func(_ *tool, _ *simhub.Hub, d *described, _ *mappings) { d.sort = "other" },
		"the index byDue is missing": func(_ *tool, _ *simhub.Hub, d *described, _ *mappings) {
			d.indexes = d.indexes[:2]
		},
		"TTL on the attribute ttl is off": func(_ *tool, _ *simhub.Hub, d *described, _ *mappings) {
			d.ttl = types.TimeToLiveStatusDisabled
		},
		"point-in-time recovery is off": func(_ *tool, _ *simhub.Hub, d *described, _ *mappings) {
			d.backups = types.PointInTimeRecoveryStatusDisabled
		},
		"the state is Disabled (not by perdure pause)": func(_ *tool, _ *simhub.Hub, _ *described, m *mappings) {
			*m.all[0].State = "Disabled"
		},
		"queue inbox: no function is mapped": func(_ *tool, _ *simhub.Hub, _ *described, m *mappings) {
			m.all = m.all[1:]
		},
		"dead letters of default: the queue contains about 1 dead letters": func(
			h *tool, hub *simhub.Hub, _ *described, _ *mappings,
		) {
			addDeadLetter(h.t, hub, "default", "poison: it", "{}")
		},
		"the clock of this machine differs from the clock of AWS by 59s": func(
			h *tool, _ *simhub.Hub, _ *described, _ *mappings,
		) {
			h.adminHub.Now = func() time.Time { return time.Now().Add(time.Minute) }
		},
		"queue default.fifo: the queue type is standard instead of FIFO": func(
			h *tool, hub *simhub.Hub, _ *described, m *mappings,
		) {
			exclusiveQueue(h, hub, m, "of-keys")
		},
		"queue inbox: the queue type is standard instead of FIFO": func(
			h *tool, _ *simhub.Hub, _ *described, m *mappings,
		) {
			swapInbox(h, m)
		},
		"the queue has no dead-letter queue": func(h *tool, hub *simhub.Hub, _ *described, m *mappings) {
			h.adminHub.Config.TimersURL = hub.Cloud.Queues.Create("bare", simaws.QueueConfig{})
			m.add("bare", hub.Cloud.Queues.ARN(h.adminHub.Config.TimersURL), "Enabled")
		},
		"queue timers: the maximum message size is 262144 bytes instead of 1048576": func(
			h *tool, hub *simhub.Hub, _ *described, m *mappings,
		) {
			h.adminHub.Config.TimersURL = hub.Cloud.Queues.Create("small", simaws.QueueConfig{
				DeadLetterQueue: "timers-dead", MaxReceiveCount: 100, MaximumMessageSize: 256 << 10,
			})
			m.add("small", hub.Cloud.Queues.ARN(h.adminHub.Config.TimersURL), "Enabled")
		},
		"dead letters of timers: the maximum message size is 262144 bytes instead of 1048576": func(
			h *tool, hub *simhub.Hub, _ *described, _ *mappings,
		) {
			h.adminHub.Config.DeadLetters["timers"] = hub.Cloud.Queues.Create("small-dead",
				simaws.QueueConfig{MaximumMessageSize: 256 << 10})
		},
		"the maxReceiveCount is 3, but must be at least 50": func(h *tool, hub *simhub.Hub, _ *described, m *mappings) {
			h.adminHub.Config.TimersURL = hub.Cloud.Queues.Create("hasty", simaws.QueueConfig{
				DeadLetterQueue: "timers-dead", MaxReceiveCount: 3,
			})
			m.add("hasty", hub.Cloud.Queues.ARN(h.adminHub.Config.TimersURL), "Enabled")
		},
	} {
		t.Run(mentions, func(t *testing.T) {
			t.Parallel()
			onAWSInMemory(t, func(ctx context.Context, h *tool, hub *simhub.Hub) {
				d, m := healthy(h, hub)
				if got := h.mustRun("doctor"); got != "no problems found\n" {
					h.t.Errorf("doctor of a healthy hub printed %s", got)
				}
				breakIt(h, hub, d, m)
				code := h.run(ctx, "doctor")
				if got := h.out.String(); code != operations.CodeProblems || strings.Count(got, "! ") != 1 ||
					!strings.Contains(got, mentions) || !strings.Contains(got, "impact: ") ||
					!strings.Contains(got, "fix: ") {
					h.t.Errorf("exit %d: %s%s", code, got, h.err.String())
				}
			})
		})
	}
}

// Doctor reports exactly the problem of each case: of functions, roles, builds, workers and the schedule group.
func TestDoctor_problemOfFunctionsOrWorkers_isReported(t *testing.T) {
	t.Parallel()
	for mentions, breakIt := range map[string]func(ctx context.Context, h *tool, hub *simhub.Hub, f *deployedFunctions){
		`function perdure-test-worker: PERDURE_TABLE is "the-old-one"`: func(
			_ context.Context, _ *tool, _ *simhub.Hub, f *deployedFunctions,
		) {
			f.broken, f.variables = "worker", map[string]string{"PERDURE_TABLE": "the-old-one"}
		},
		"the timeout 12h0m0s exceeds the visibility timeout": func(
			_ context.Context, _ *tool, _ *simhub.Hub, f *deployedFunctions,
		) {
			f.broken, f.timeout = "renewer", 12*time.Hour
		},
		"the last deployment failed: no such layer": func(
			_ context.Context, _ *tool, _ *simhub.Hub, f *deployedFunctions,
		) {
			f.broken, f.failed = "orchestrator", "no such layer"
		},
		"the reserved concurrency is 0": func(_ context.Context, _ *tool, _ *simhub.Hub, f *deployedFunctions) {
			f.broken, f.reserved = "orchestrator", aws.Int32(0)
		},
		"recursive loop detection is enabled": func(_ context.Context, _ *tool, _ *simhub.Hub, f *deployedFunctions) {
			f.broken, f.loops = "worker", lambdatypes.RecursiveLoopTerminate
		},
		"the role lacks permissions: dynamodb:DeleteItem on the-table": func(
			_ context.Context, _ *tool, _ *simhub.Hub, f *deployedFunctions,
		) {
			f.denied = "dynamodb:DeleteItem"
		},
		"schedule group: ": func(_ context.Context, h *tool, _ *simhub.Hub, f *deployedFunctions) {
			h.adminHub.Config.TimerMode, h.adminHub.Config.ScheduleGroup, f.gone = dynamo.TimersSchedules, "gone", true
		},
		"about 1 work items are waiting, and no worker has ever reported": func(
			ctx context.Context, h *tool, hub *simhub.Hub, _ *deployedFunctions,
		) {
			sendWork(ctx, h, hub)
		},
		"the last worker (build b-7) reported 30m0s ago": func(
			ctx context.Context, h *tool, hub *simhub.Hub, _ *deployedFunctions,
		) {
			sendWork(ctx, h, hub)
			if err := hub.Provider.ReportWorker(ctx,
				provider.WorkerReport{Queue: "default", BuildID: "b-7"}); err != nil {
				h.t.Fatal(err)
			}
			time.Sleep(30 * time.Minute)
		},
		`build new: the orchestration "hello" version "" is not registered`: func(
			ctx context.Context, h *tool, hub *simhub.Hub, _ *deployedFunctions,
		) {
			h.mustRun("start", "hello")
			time.Sleep(time.Second)
			if err := hub.Provider.PutBuild(ctx,
				provider.Build{ID: "new", Orchestrations: map[string][]string{"other": {""}}}); err != nil {
				h.t.Fatal(err)
			}
		},
	} {
		t.Run(mentions, func(t *testing.T) {
			t.Parallel()
			onAWSInMemory(t, func(ctx context.Context, h *tool, hub *simhub.Hub) {
				healthy(h, hub)
				h.mustRun("doctor")
				breakIt(ctx, h, hub, h.adminHub.Functions.(*deployedFunctions))
				code := h.run(ctx, "doctor")
				if got := h.out.String(); code != operations.CodeProblems || strings.Count(got, "! ") != 1 ||
					!strings.Contains(got, mentions) || !strings.Contains(got, "impact: ") ||
					!strings.Contains(got, "fix: ") {
					h.t.Errorf("exit %d: %s%s", code, got, h.err.String())
				}
			})
		})
	}
}

func sendWork(ctx context.Context, h *tool, hub *simhub.Hub) {
	h.t.Helper()
	url := hub.Provider.Config().WorkQueues["default"]
	if _, err := hub.Cloud.Queues.SendMessageBatch(ctx,
		&sqs.SendMessageBatchInput{
			QueueUrl: &url,
			Entries:  []sqstypes.SendMessageBatchRequestEntry{{Id: aws.String("1"), MessageBody: aws.String("{}")}},
		}); err != nil {
		h.t.Fatal(err)
	}
}

// deployedFunctions simulates the responses of Lambda, IAM and Scheduler for a hub. Only the function broken has
// problems.
type deployedFunctions struct {
	where *dynamo.HubConfig
	// broken is the suffix of the function name to which the next fields apply.
	broken    string
	variables map[string]string
	timeout   time.Duration
	failed    string
	reserved  *int32
	loops     lambdatypes.RecursiveLoop
	// denied is an action that no role permits. If gone is set, the schedule group does not exist.
	denied string
	gone   bool
	// available is the account's quota of concurrent executions. 0 means the default quota of 1,000.
	available int32
}

func (f *deployedFunctions) GetAccountSettings(
	context.Context, *lambda.GetAccountSettingsInput, ...func(*lambda.Options),
) (*lambda.GetAccountSettingsOutput, error) {
	available := cmp.Or(f.available, 1000)
	return &lambda.GetAccountSettingsOutput{AccountLimit: &lambdatypes.AccountLimit{
		ConcurrentExecutions: available, UnreservedConcurrentExecutions: &available,
	}}, nil
}

func (f *deployedFunctions) is(arn *string) bool {
	return f.broken != "" && strings.HasSuffix(*arn, f.broken)
}

func (f *deployedFunctions) GetFunctionConfiguration(
	_ context.Context, in *lambda.GetFunctionConfigurationInput, _ ...func(*lambda.Options),
) (*lambda.GetFunctionConfigurationOutput, error) {
	out := &lambda.GetFunctionConfigurationOutput{
		Timeout: aws.Int32(3), State: lambdatypes.StateActive, LastUpdateStatus: lambdatypes.LastUpdateStatusSuccessful,
		Role: aws.String("arn:aws:iam::1:role/r"),
		Environment: &lambdatypes.EnvironmentResponse{
			Variables: map[string]string{
				"PERDURE_HUB": f.where.Name, "PERDURE_TABLE": f.where.Table, "PERDURE_INBOX_URL": f.where.InboxURL,
			},
		},
	}
	if f.is(in.FunctionName) {
		maps.Copy(out.Environment.Variables, f.variables)
		if f.timeout > 0 {
			out.Timeout = aws.Int32(int32(f.timeout / time.Second))
		}
		if f.failed != "" {
			out.LastUpdateStatus, out.LastUpdateStatusReason = lambdatypes.LastUpdateStatusFailed, &f.failed
		}
	}
	return out, nil
}

func (f *deployedFunctions) GetFunctionConcurrency(
	_ context.Context, in *lambda.GetFunctionConcurrencyInput, _ ...func(*lambda.Options),
) (*lambda.GetFunctionConcurrencyOutput, error) {
	out := &lambda.GetFunctionConcurrencyOutput{}
	if f.is(in.FunctionName) {
		out.ReservedConcurrentExecutions = f.reserved
	}
	return out, nil
}

func (f *deployedFunctions) GetFunctionRecursionConfig(
	_ context.Context, in *lambda.GetFunctionRecursionConfigInput, _ ...func(*lambda.Options),
) (*lambda.GetFunctionRecursionConfigOutput, error) {
	out := &lambda.GetFunctionRecursionConfigOutput{RecursiveLoop: lambdatypes.RecursiveLoopAllow}
	if f.is(in.FunctionName) && f.loops != "" {
		out.RecursiveLoop = f.loops
	}
	return out, nil
}

func (f *deployedFunctions) SimulatePrincipalPolicy(
	_ context.Context, in *iam.SimulatePrincipalPolicyInput, _ ...func(*iam.Options),
) (*iam.SimulatePrincipalPolicyOutput, error) {
	out := &iam.SimulatePrincipalPolicyOutput{}
	for _, action := range in.ActionNames {
		r := iamtypes.EvaluationResult{
			EvalActionName: &action, EvalDecision: iamtypes.PolicyEvaluationDecisionTypeAllowed,
		}
		if action == f.denied {
			r.EvalDecision = iamtypes.PolicyEvaluationDecisionTypeImplicitDeny
		}
		out.EvaluationResults = append(out.EvaluationResults, r)
	}
	return out, nil
}

func (f *deployedFunctions) GetScheduleGroup(
	context.Context, *scheduler.GetScheduleGroupInput, ...func(*scheduler.Options),
) (*scheduler.GetScheduleGroupOutput, error) {
	if f.gone {
		return nil, &schedulertypes.ResourceNotFoundException{}
	}
	return &scheduler.GetScheduleGroupOutput{State: schedulertypes.ScheduleGroupStateActive}, nil
}

// swapInbox replaces the inbox with a standard queue.
func swapInbox(h *tool, m *mappings) {
	where := &h.adminHub.Config
	where.InboxURL = where.TimersURL
	m.all = append(m.all[:0:0], m.all[1:]...)
}

// exclusiveQueue adds a queue for exclusive keys to the hub's work queue. name is the queue name in SQS.
func exclusiveQueue(h *tool, hub *simhub.Hub, m *mappings, name string) {
	hub.Cloud.Queues.Create("dead-"+name, simaws.QueueConfig{})
	h.adminHub.Config.WorkQueues[history.ExclusiveQueue("default")] = hub.Cloud.Queues.Create(name, simaws.QueueConfig{
		DeadLetterQueue: "dead-" + name, MaxReceiveCount: 100,
	})
	m.add("worker", hub.Cloud.Queues.ARN(h.adminHub.Config.WorkQueues[history.ExclusiveQueue("default")]), "Enabled")
}

// The queue for exclusive keys must be a FIFO queue, so doctor does not report the queue type.
func TestDoctor_fifoQueueForExclusiveKeys_isNoProblem(t *testing.T) {
	t.Parallel()
	onAWSInMemory(t, func(_ context.Context, h *tool, hub *simhub.Hub) {
		_, m := healthy(h, hub)
		exclusiveQueue(h, hub, m, "of-keys.fifo")
		if got := h.mustRun("doctor"); got != "no problems found\n" {
			t.Errorf("doctor printed %s", got)
		}
	})
}

func TestDoctor_accessDenied_reportsUnreadResources(t *testing.T) {
	t.Parallel()
	onAWSInMemory(t, func(ctx context.Context, h *tool, hub *simhub.Hub) {
		d, _ := healthy(h, hub)
		d.refusing = true
		h.adminHub.ServerTime = func(context.Context) (time.Time, error) { return time.Time{}, nil }
		if code := h.run(ctx, "doctor"); code != operations.CodeUnverified ||
			strings.Count(h.out.String(), "could not be read") != 2 ||
			!strings.Contains(h.out.String(), "AccessDenied") {
			h.t.Errorf("exit %d: %s", code, h.out.String())
		}
		d.backups = types.PointInTimeRecoveryStatusDisabled
		if code := h.run(ctx, "doctor", "--json"); code != operations.CodeProblems ||
			!strings.Contains(h.out.String(), `{"unread":true,"of":"table","what":"AccessDenied`) {
			h.t.Errorf("exit %d: %s", code, h.out.String())
		}
	})
}

func TestDoctor_pausedHub_namesPauseAsCause(t *testing.T) {
	t.Parallel()
	onAWSInMemory(t, func(ctx context.Context, h *tool, hub *simhub.Hub) {
		healthy(h, hub)
		h.mustRun("pause", "--yes")
		if code := h.run(ctx, "doctor"); code != operations.CodeProblems ||
			strings.Count(h.out.String(), "the state is Disabled (disabled by perdure pause)") != 4 {
			h.t.Errorf("exit %d: %s", code, h.out.String())
		}
		h.mustRun("resume")
		h.mustRun("doctor")
	})
}

// wantDoctor runs doctor, and checks that doctor reports a problem with the given text.
func wantDoctor(ctx context.Context, h *tool, wantText string) {
	h.t.Helper()
	if code := h.run(ctx, "doctor"); code != operations.CodeProblems || !strings.Contains(h.out.String(), wantText) {
		h.t.Errorf("doctor exits with %d, and its output does not contain %q:\n%s", code, wantText, h.out.String())
	}
}

// A new account may have a quota of only 10 concurrent executions. The mappings can use all of them unless each mapping
// has a MaximumConcurrency.
func TestDoctor_accountWithFewConcurrentExecutions_isReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		available, most, first int32 // most limits all mappings except the first; first limits the first mapping
		mentions               string
	}{
		"default quota": {available: 0},
		"enough":        {available: 100},
		"new account": {
			10, 0, 0,
			"account: the account has 10 unreserved concurrent executions (quota 10), and the hub's mappings can " +
				"use all",
		},
		"one is not capped": {
			10, 2, 0, "the hub's mappings can use all of them, because at least one has no MaximumConcurrency",
		},
		"caps too high": {10, 2, 8, "the hub's mappings can use 1"},
		"capped":        {10, 2, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onAWSInMemory(t, func(ctx context.Context, h *tool, hub *simhub.Hub) {
				_, m := healthy(h, hub)
				h.adminHub.Account.(*deployedFunctions).available = c.available
				for i := range m.all {
					m.all[i].ScalingConfig = &lambdatypes.ScalingConfig{MaximumConcurrency: &c.most}
				}
				m.all[0].ScalingConfig.MaximumConcurrency = &c.first
				code := h.run(ctx, "doctor")
				want := operations.CodeProblems
				if c.mentions == "" {
					want, c.mentions = 0, "no problems found"
				}
				if got := h.out.String(); code != want || !strings.Contains(got, c.mentions) ||
					strings.Count(got, "! ") > 1 {
					t.Errorf("exit %d, want %d: %s%s", code, want, got, h.err.String())
				}
			})
		})
	}
}
