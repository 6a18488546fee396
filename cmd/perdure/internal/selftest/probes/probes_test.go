package probes

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/perdure/perdure/internal/awsrequest"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simsdk"
	"github.com/perdure/perdure/internal/sleep"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// simulated returns probes of a simulated account.
func simulated(t *testing.T, intercept simaws.Interceptor) *Probes {
	t.Helper()
	cloud := simaws.New(simaws.WithInterceptor(intercept), simaws.WithTable(simaws.TableConfig{
		PartitionKey: "pk", SortKey: "sk",
		Indexes: []simaws.Index{{Name: index, PartitionKey: "gs", SortKey: "sk"}},
	}))
	standard := cloud.Queues.Create("standard", simaws.QueueConfig{})
	clients := simsdk.Clients(cloud, simsdk.Config())
	clients.Schedules = &undeliverable{
		ScheduleAPI: clients.Schedules, queues: clients.Queues, created: map[string]bool{}, live: map[string]bool{},
	}
	clients.Table = &throttledTable{
		TableAPI: clients.Table, units: 300, put: indexThrottled, code: throttledCode,
		message: "throughput for one or more global secondary indexes was exceeded",
	}
	fair := &fairQueue{
		QueueAPI: clients.Queues, url: cloud.Queues.Create("fair", simaws.QueueConfig{}), inFlight: map[string]int{},
		most: batchSize,
	}
	clients.Queues = &purgedQueues{QueueAPI: fair, purge: cloud.Queues.PurgeQueue}
	p := &Probes{
		Clients: clients,
		QueueURLs: QueueURLs{
			StandardURL:    standard,
			FIFOURL:        cloud.Queues.Create("ordered.fifo", simaws.QueueConfig{PerGroupDeduplication: true}),
			DeadLettersURL: cloud.Queues.Create("dead.fifo", simaws.QueueConfig{PerGroupDeduplication: true}),
			RedriveURL: cloud.Queues.Create("redrive.fifo", simaws.QueueConfig{
				PerGroupDeduplication: true, DeadLetterQueue: "dead.fifo", MaxReceiveCount: MaxReceives,
			}),
			PurgeURL:        cloud.Queues.Create("purged", simaws.QueueConfig{}),
			RateURL:         cloud.Queues.Create("rate.fifo", simaws.QueueConfig{PerGroupDeduplication: true}),
			FairURL:         fair.url,
			ScheduleDeadURL: cloud.Queues.Create("undelivered", simaws.QueueConfig{}),
		},
		TableName: "probes", ThrottledTableName: "throttled", Hub: dynamo.HubConfig{
			ScheduleGroup: "default", TimersARN: cloud.Queues.ARN(standard),
			ScheduleRoleARN: "arn:aws:iam::000000000000:role/schedules", PayloadBucket: "payloads",
		},
		GatewayConfig: GatewayConfig{apiURL, functionURL, streamURL}, AlarmNames: AlarmNames{"breaching", "not breaching"},
		RuleNames: RuleNames{"enabled", "disabled"}, OperatorConfig: OperatorConfig{
			Operator: &simulatedOperator{errs: map[string]error{"other": errDenied}}, OwnMapping: "own", OtherMapping: "other",
		},
		Metrics: &simulatedMetrics{values: 100, breaching: "ALARM"}, Logs: &simulatedLogs{}, Now: time.Now, Sleep: sleep.For,
	}
	f := newFunction(cloud, p)
	g := &simulatedGateways{function: f}
	p.Functions, p.Requests = f, g
	p.CallerConfig = CallerConfig{
		Caller: g, PartialCaller: rejecting(http.StatusForbidden), CallerFunctions: invocations{err: errDenied},
		PartialFunctions: invocations{},
	}
	return p
}

// purgedQueues rejects the purge of a queue for a minute after another one, as SQS does. The simulation accepts it.
type purgedQueues struct {
	dynamo.QueueAPI

	purge  func(context.Context, *sqs.PurgeQueueInput, ...func(*sqs.Options)) (*sqs.PurgeQueueOutput, error)
	purged time.Time
	again  bool // accept any purge
}

func (q *purgedQueues) PurgeQueue(
	ctx context.Context, in *sqs.PurgeQueueInput, _ ...func(*sqs.Options),
) (*sqs.PurgeQueueOutput, error) {
	if !q.again && time.Since(q.purged) < time.Minute {
		return nil, &sqstypes.PurgeQueueInProgress{}
	}
	out, err := q.purge(ctx, in)
	if err == nil {
		q.purged = time.Now()
	}
	return out, err
}

// undeliverable moves messages of schedules with a dead-letter queue to that queue. The simulation delivers them.
type undeliverable struct {
	dynamo.ScheduleAPI

	queues  dynamo.QueueAPI
	created map[string]bool // by the name of the schedule
	live    map[string]bool // schedules that the simulation has
	kept    bool            // schedules do not delete themselves
	lost    bool            // there are no dead letters
	offset  bool            // a page begins after the number of schedules of the pages before it
}

// ListSchedules lists the names with a prefix. The token of a page is the last name before it.
func (u *undeliverable) ListSchedules(
	_ context.Context, in *scheduler.ListSchedulesInput, _ ...func(*scheduler.Options),
) (*scheduler.ListSchedulesOutput, error) {
	out := &scheduler.ListSchedulesOutput{}
	after := aws.ToString(in.NextToken)
	skipped, _ := strconv.Atoi(after)
	for i, name := range slices.Sorted(maps.Keys(u.live)) {
		passed := name <= after
		if u.offset {
			passed = i < skipped
		}
		if passed || !strings.HasPrefix(name, *in.NamePrefix) {
			continue
		}
		out.Schedules = append(out.Schedules, schedulertypes.ScheduleSummary{Name: &name})
		if len(out.Schedules) == int(aws.ToInt32(in.MaxResults)) {
			out.NextToken = &name
			if u.offset {
				out.NextToken = aws.String(strconv.Itoa(i + 1))
			}
			break
		}
	}
	return out, nil
}

func (u *undeliverable) DeleteSchedule(
	ctx context.Context, in *scheduler.DeleteScheduleInput, opts ...func(*scheduler.Options),
) (*scheduler.DeleteScheduleOutput, error) {
	out, err := u.ScheduleAPI.DeleteSchedule(ctx, in, opts...)
	if err == nil {
		delete(u.live, *in.Name)
	}
	return out, err
}

func (u *undeliverable) CreateSchedule(
	ctx context.Context, in *scheduler.CreateScheduleInput, opts ...func(*scheduler.Options),
) (*scheduler.CreateScheduleOutput, error) {
	if in.Target.DeadLetterConfig == nil {
		if u.kept && u.created[*in.Name] {
			return nil, &schedulertypes.ConflictException{}
		}
		out, err := u.ScheduleAPI.CreateSchedule(ctx, in, opts...)
		if err == nil {
			u.live[*in.Name] = true
		}
		return out, err
	}
	_, name, _ := strings.Cut(*in.Target.DeadLetterConfig.Arn, "000000000000:")
	u.created[*in.Name] = true
	if u.lost {
		return &scheduler.CreateScheduleOutput{}, nil
	}
	const firesAfter = 30
	_, err := u.queues.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{
		QueueUrl: aws.String("sim://" + name), Entries: []sqstypes.SendMessageBatchRequestEntry{
			{Id: aws.String("0"), MessageBody: in.Target.Input, DelaySeconds: firesAfter},
		},
	})
	return &scheduler.CreateScheduleOutput{}, err
}

// The simulated account behaves as assumed.
func TestProbes_simulatedAccount_holds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := simulated(t, nil)
		f, _ := p.Functions.(*simulatedFunction)
		f.serve(t)
		for _, c := range p.all() {
			detail, err := c.Run(t.Context())
			if _, ok := errors.AsType[*UndecidedError](err); ok && strings.HasPrefix(c.Name, "dynamodb-conflict") {
				continue // the simulation has conflicts only if a test produces them
			}
			if err != nil || detail == "" {
				t.Errorf("%s: got %q, %v", c.Name, detail, err)
			}
		}
	})
}

// A missing permission does not mean that the account behaves differently.
func TestProbes_deniedCalls_areUndecided(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		denied := &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no"}
		p := simulated(t, func(context.Context, simaws.Call, func() error) error { return denied })
		f, _ := p.Functions.(*simulatedFunction)
		f.mistake.denied = true
		p.Metrics = deniedMetrics{}
		p.Operator = &simulatedOperator{errs: map[string]error{"own": errDenied}}
		for _, c := range p.all() {
			_, err := c.Run(t.Context())
			if _, ok := errors.AsType[*UndecidedError](err); !ok {
				t.Errorf("%s: got %v", c.Name, err)
			}
		}
	})
}

// unsortedBucket lists keys in the reverse order.
type unsortedBucket struct{ dynamo.BucketAPI }

func (b unsortedBucket) ListObjects(
	ctx context.Context, bucket, prefix, after string,
) ([]provider.StoredPayload, error) {
	page, err := b.BucketAPI.ListObjects(ctx, bucket, prefix, after)
	slices.Reverse(page)
	return page, err
}

// lossyBucket confirms writes that it does not make.
type lossyBucket struct{ dynamo.BucketAPI }

func (b lossyBucket) PutObject(context.Context, string, string, []byte) error { return nil }

// otherBucket reports missing objects in another way.
type otherBucket struct {
	dynamo.BucketAPI

	code   string
	status int
}

func (b otherBucket) GetObject(ctx context.Context, bucket, key string, most int64) ([]byte, error) {
	body, err := b.BucketAPI.GetObject(ctx, bucket, key, most)
	if errors.Is(err, provider.ErrNotFound) {
		err = &awsrequest.APIError{Operation: "get object", Code: b.code, Status: b.status}
	}
	return body, err
}

// The SDK repeats a put whose response is lost, and the repetition is rejected.
func TestProbes_responseToPutIsLost_isUndecided(t *testing.T) {
	t.Parallel()
	p := simulated(t, func(_ context.Context, c simaws.Call, call func() error) error {
		err := call()
		if err == nil && c.Operation == "PutItem" {
			err = call()
		}
		return err
	})
	table := tableProbes{clock: clock{p.Now, p.Sleep}, Table: p.Table, TableName: p.TableName}
	detail, err := table.condition(t.Context())
	if _, open := errors.AsType[*UndecidedError](err); !open || !strings.Contains(err.Error(), "no put succeeds") {
		t.Errorf("got %q, %v", detail, err)
	}
}

// A request that S3 has not processed shows nothing.
func TestProbes_missingObjectNotRead_isUndecided(t *testing.T) {
	t.Parallel()
	for code, status := range map[string]int{"SlowDown": http.StatusServiceUnavailable, "ExpiredToken": http.StatusBadRequest} {
		objects := objectProbes{otherBucket{simulated(t, nil).Bucket, code, status}, "payloads"}
		_, err := objects.missing(t.Context())
		if _, open := errors.AsType[*UndecidedError](err); !open {
			t.Errorf("%s: got %v", code, err)
		}
	}
}

// All failed conditions of a transaction are reported beside a conflict, or they are not.
func TestProbes_conflictingTransactions_reasonsDecide(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{conditionFailed: "", "None": "a failed condition is not reported"} {
		p := simulated(t, func(_ context.Context, c simaws.Call, call func() error) error {
			if c.Operation != "TransactWriteItems" {
				return call()
			}
			return &dynamodbtypes.TransactionCanceledException{CancellationReasons: []dynamodbtypes.CancellationReason{
				{Code: aws.String("TransactionConflict")}, {Code: &code},
			}}
		})
		_, err := p.check("dynamodb-conflict-reasons").Run(t.Context())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", code, err)
		}
	}
}

// emptyQueues counts no messages.
type emptyQueues struct{ dynamo.QueueAPI }

func (q emptyQueues) GetQueueAttributes(
	context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options),
) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"ApproximateNumberOfMessages": "0"}}, nil
}

func TestProbes_accountDiffers_checkReportsIt(t *testing.T) {
	t.Parallel()
	for test, c := range map[string]struct { // by the check and a condition
		change func(p *Probes)
		want   string
	}{
		"sqs-redrive": {func(p *Probes) { p.RedriveURL = p.FIFOURL }, "the queue delivers a message 3 times"},
		"sqs-counts":  {func(p *Probes) { p.Queues = emptyQueues{p.Queues} }, "with 5 messages counts 0 after 1m15s"},
		"schedule-dead-letter": {func(p *Probes) {
			u, _ := p.Schedules.(*undeliverable)
			u.kept = true
		}, "the name of a schedule that was undelivered is in use"},
		"schedule-dead-letter lost": {func(p *Probes) {
			u, _ := p.Schedules.(*undeliverable)
			u.lost = true
		}, "no dead letter of an undeliverable schedule"},
		"schedule-list": {func(p *Probes) {
			u, _ := p.Schedules.(*undeliverable)
			u.offset = true
		}, "pages of 3 schedules omit 3 of 9 while others are deleted"},
		"s3-list":        {func(p *Probes) { p.Bucket = unsortedBucket{p.Bucket} }, "got the order"},
		"s3-consistency": {func(p *Probes) { p.Bucket = lossyBucket{p.Bucket} }, "not found"},
		"s3-missing":     {func(p *Probes) { p.Bucket = otherBucket{p.Bucket, "AccessDenied", 403} }, "as AccessDenied with status 403"},
		"sqs-purge": {func(p *Probes) {
			q, _ := p.Queues.(*purgedQueues)
			q.again = true
		}, "a second purge is accepted at once"},
	} {
		name, _, _ := strings.Cut(test, " ")
		t.Run(test, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := simulated(t, nil)
				c.change(p)
				_, err := p.check(name).Run(t.Context())
				if _, open := errors.AsType[*UndecidedError](err); err == nil || open ||
					!strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %s", err, c.want)
				}
			})
		})
	}
}
