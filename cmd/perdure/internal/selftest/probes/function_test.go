package probes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/perdure/perdure/cmd/perdure/internal/selftest/app/probefunction"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider/dynamo"
)

// simulatedFunction is the probe function. It implements dynamo.FunctionAPI with the limits of Lambda.
type simulatedFunction struct {
	probefunction.Function

	cloud   *simaws.Cloud
	config  FunctionConfig
	mistake mistake
	running sync.WaitGroup
	ticks   int64 // at the end of the last call

	aliasedURL string
	versions   *simulatedVersions
}

// mistake is a difference between an account and the assumptions.
type mistake struct {
	visible        bool // failed messages are visible at once
	complete       bool // no message fails
	deaf           bool // functions cannot change the visibility of failed messages
	dropped        bool // the first receive does not run the function
	empty          bool // an empty list fails the batch
	strict         bool // a failure fails the whole batch
	unlimited      bool // MaximumConcurrency is ignored
	forgetful      bool // goroutines end with the invocation
	thawed         bool // goroutines continue between invocations
	wrongClock     bool // in later invocations
	early          bool // an invocation ends before its deadline
	late           bool // an invocation ends after its deadline
	largest        bool // responses have no limit
	largestRequest bool
	failing        bool // large responses fail for another reason
	otherText      bool // of a timeout
	deleted        bool // a batch fails if the function deletes one of its messages
	otherEnv       bool // each invocation has a new environment
	denied         bool
	repeated       bool   // a failed asynchronous invocation is repeated
	tooLarge       bool   // large batches never run
	unlogged       string // text of lines that the log lacks
	verbose        bool   // the log has lines of all levels
	released       bool   // throttled messages are visible at once
	unthrottled    bool   // functions without concurrency run
	unreceived     bool   // mappings of functions without concurrency receive nothing
	held           bool   // Lambda receives messages eight seconds before it runs the function
}

// limitedTable has the permissions of the function.
type limitedTable struct {
	dynamo.TableAPI

	first bool // only the first item of a transaction is checked
	all   bool // puts of any item are allowed
}

var errDenied = &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not authorized"}

func (t *limitedTable) allows(i item) bool {
	pk, _ := i["pk"].(*types.AttributeValueMemberS)
	return t.all || strings.HasPrefix(pk.Value, strings.TrimSuffix(probefunction.Partitions, "*"))
}

func (t *limitedTable) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	if !t.allows(in.Item) {
		return nil, errDenied
	}
	return t.TableAPI.PutItem(ctx, in, opts...)
}

func (t *limitedTable) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	for i := range in.TransactItems {
		if !t.allows(in.TransactItems[i].Put.Item) && (i == 0 || !t.first) {
			return nil, errDenied
		}
	}
	return t.TableAPI.TransactWriteItems(ctx, in, opts...)
}

// newFunction returns the probe function of a simulated account, with its queues.
func newFunction(cloud *simaws.Cloud, p *Probes) *simulatedFunction {
	timeout := FunctionTimeout * time.Second
	p.FunctionConfig = FunctionConfig{
		MappedName: "mapped", CalledName: "called", MappedLogs: "logs",
		MappedURL:        cloud.Queues.Create("mapped", simaws.QueueConfig{VisibilityTimeout: timeout}),
		ThrottledDeadURL: cloud.Queues.Create("throttled-dead", simaws.QueueConfig{}),
		ThrottledURL: cloud.Queues.Create("throttled", simaws.QueueConfig{
			VisibilityTimeout: timeout, DeadLetterQueue: "throttled-dead", MaxReceiveCount: ThrottledReceives,
		}),
		MappedFIFOURL: cloud.Queues.Create("mapped.fifo", simaws.QueueConfig{
			VisibilityTimeout: timeout, PerGroupDeduplication: true,
		}),
	}
	versions := &simulatedVersions{}
	p.AliasConfig = AliasConfig{
		Versions: versions, AliasedName: "aliased",
		AliasedURL: cloud.Queues.Create("aliased", simaws.QueueConfig{VisibilityTimeout: timeout}),
	}
	lines, _ := p.Logs.(*simulatedLogs)
	return &simulatedFunction{
		Function: probefunction.Function{
			Table: &limitedTable{TableAPI: p.Table}, Queues: p.Queues, TableName: p.TableName, Log: lines,
		},
		cloud: cloud, config: p.FunctionConfig, aliasedURL: p.AliasedURL, versions: versions,
	}
}

// serve runs the mappings until the test ends.
func (f *simulatedFunction) serve(t *testing.T) {
	t.Helper()
	concurrency := FunctionConcurrency
	if f.mistake.unlimited {
		concurrency = 0
	}
	f.cloud.Map(f.config.MappedURL, simaws.Mapping{BatchSize: 1, Concurrency: concurrency, Invoke: f.handleMessages})
	f.cloud.Map(f.config.MappedFIFOURL, simaws.Mapping{Invoke: f.handleMessages})
	if !f.mistake.unreceived {
		f.cloud.Map(f.config.ThrottledURL, simaws.Mapping{BatchSize: 1, Invoke: f.throttle})
	}
	f.cloud.Map(f.aliasedURL, simaws.Mapping{BatchSize: 1, Concurrency: FunctionConcurrency, Invoke: f.handleAliased})
	ctx, cancel := context.WithCancel(t.Context())
	f.running.Go(func() { f.cloud.Serve(ctx) })
	t.Cleanup(func() {
		cancel()
		f.running.Wait()
		time.Sleep(time.Minute) // virtual time, in which the goroutine of a call ends
	})
}

// handleAliased runs a version of the function.
func (f *simulatedFunction) handleAliased(ctx context.Context, messages []sqstypes.Message) ([]string, error) {
	version := &simulatedFunction{Function: probefunction.Function{
		Table: f.Table, Queues: f.Queues, TableName: f.TableName, Log: f.Log, Version: f.versions.version(),
	}}
	return version.handleMessages(ctx, messages)
}

// throttle does not run the function.
func (f *simulatedFunction) throttle(ctx context.Context, messages []sqstypes.Message) ([]string, error) {
	if f.mistake.unthrottled {
		return f.handleMessages(ctx, messages)
	}
	if f.mistake.released {
		time.Sleep(time.Second)
		_, _ = f.Queues.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{
			QueueUrl: &f.config.ThrottledURL, Entries: []sqstypes.ChangeMessageVisibilityBatchRequestEntry{
				{Id: aws.String("0"), ReceiptHandle: messages[0].ReceiptHandle},
			},
		})
	}
	return nil, errors.New("throttled")
}

func (f *simulatedFunction) handleMessages(ctx context.Context, messages []sqstypes.Message) ([]string, error) {
	if f.mistake.tooLarge && len(messages) > 1 {
		return nil, errors.New("too large")
	}
	if f.mistake.dropped && messages[0].Attributes["ApproximateReceiveCount"] == "1" {
		return nil, errors.New("throttled")
	}
	id := *messages[0].MessageId + time.Now().String()
	e := &probefunction.Event{}
	for i := range messages {
		m := &messages[i]
		attributes := maps.Clone(m.Attributes)
		if f.mistake.held {
			first, _ := strconv.ParseInt(attributes[probefunction.AttributeFirst], 10, 64)
			attributes[probefunction.AttributeFirst] = strconv.FormatInt(first-8000, 10)
		}
		e.Records = append(e.Records, events.SQSMessage{
			MessageId: *m.MessageId, ReceiptHandle: *m.ReceiptHandle, Body: *m.Body, Attributes: attributes,
		})
	}
	result, err := f.Handle(lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{AwsRequestID: id}), e)
	if f.mistake.complete {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if f.mistake.deleted && strings.Contains(e.Records[0].Body, `"delete":true`) {
		return nil, errors.New("a message does not exist")
	}
	response, _ := result.(*events.SQSEventResponse)
	var failed []string
	for _, item := range response.BatchItemFailures {
		failed = append(failed, item.ItemIdentifier)
	}
	if f.mistake.empty && len(failed) == 0 && e.Records[0].Attributes[probefunction.AttributeCount] == "1" {
		return nil, errors.New("no list")
	}
	if f.mistake.visible {
		return failed, f.hide(ctx, messages, failed, 0)
	}
	if f.mistake.deaf {
		return failed, f.hide(ctx, messages, failed, 2*FunctionTimeout)
	}
	if f.mistake.strict && len(failed) > 0 {
		return nil, errors.New("a message failed")
	}
	return failed, nil
}

// hide sets the visibility timeout of failed messages.
func (f *simulatedFunction) hide(
	ctx context.Context, messages []sqstypes.Message, failed []string, seconds int32,
) error {
	for i := range messages {
		if !slices.Contains(failed, *messages[i].MessageId) {
			continue
		}
		if _, err := f.Queues.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{
			QueueUrl: &f.config.MappedURL, Entries: []sqstypes.ChangeMessageVisibilityBatchRequestEntry{
				{Id: aws.String("0"), ReceiptHandle: messages[i].ReceiptHandle, VisibilityTimeout: seconds},
			},
		}); err != nil {
			return err
		}
	}
	return nil
}

func (f *simulatedFunction) Invoke(
	ctx context.Context, in *lambda.InvokeInput, _ ...func(*lambda.Options),
) (*lambda.InvokeOutput, error) {
	var e probefunction.Event
	if err := json.Unmarshal(in.Payload, &e); err != nil {
		return nil, err
	}
	if f.mistake.denied {
		return nil, errDenied
	}
	lines, _ := f.Log.(*simulatedLogs)
	lines.unlogged, lines.verbose = f.mistake.unlogged, f.mistake.verbose
	if in.InvocationType == lambdatypes.InvocationTypeEvent {
		f.running.Go(func() {
			_, err := f.Handle(ctx, &e)
			if err != nil && f.mistake.repeated {
				time.Sleep(time.Minute)
				_, _ = f.Handle(ctx, &e)
			}
		})
		return &lambda.InvokeOutput{}, nil
	}
	timeout := FunctionTimeout * time.Second
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if f.mistake.early {
		timeout -= time.Second
	}
	if f.mistake.late {
		timeout += time.Minute
	}
	ended := make(chan struct{})
	var result any
	var err error
	f.running.Go(func() {
		result, err = f.Handle(ctx, &e)
		close(ended)
	})
	failed := func(text string) (*lambda.InvokeOutput, error) {
		out := &lambda.InvokeOutput{FunctionError: aws.String("Unhandled"), Payload: []byte(text)}
		id := "request-" + time.Now().String()
		awsmiddleware.SetRequestIDMetadata(&out.ResultMetadata, id)
		fmt.Fprintf(f.Log, "%s\n%s\n", text, id) // the library logs the error, Lambda the ID
		return out, nil
	}
	select {
	case <-ended:
	case <-time.After(timeout):
		if f.mistake.otherText {
			return failed(`{"errorMessage":"too slow"}`)
		}
		return failed(`{"errorType":"Sandbox.Timedout","errorMessage":"Task timed out after 6.00 seconds"}`)
	}
	if err != nil {
		return failed(err.Error())
	}
	response, _ := result.(*probefunction.Response)
	counted := response.Ticks - response.FirstTicks
	if f.mistake.forgetful {
		counted = 0
	}
	if !f.mistake.thawed {
		response.FirstTicks = f.ticks
	}
	response.Ticks = response.FirstTicks + counted
	f.ticks = response.Ticks
	if f.mistake.wrongClock && e.Call.Duration > 0 {
		response.Now = response.Now.Add(-time.Minute)
	}
	if f.mistake.otherEnv {
		response.Process += response.Now.String()
	}
	payload, err := json.Marshal(response)
	const most = 6<<20 + 100
	if len(in.Payload) > most && !f.mistake.largestRequest {
		return nil, &smithy.GenericAPIError{Code: "RequestEntityTooLargeException"}
	}
	if len(payload) > most && !f.mistake.largest {
		if f.mistake.failing {
			return failed(`{"errorType":"Runtime.OutOfMemory"}`)
		}
		return failed(`{"errorType":"Function.ResponseSizeTooLarge"}`)
	}
	return &lambda.InvokeOutput{Payload: payload}, err
}

// simulatedLogs has the lines of the function.
type simulatedLogs struct {
	mu       sync.Mutex
	text     strings.Builder
	unlogged string // a text of lines that are lost, or ""
	verbose  bool   // lines of the level DEBUG are not dropped
}

func (l *simulatedLogs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *simulatedLogs) Lines(_ context.Context, group, text string) (lines []string, err error) {
	if group != "logs" {
		return nil, errors.New("no such group")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		lost := l.unlogged != "" && strings.Contains(line, l.unlogged)
		low := strings.Contains(line, "DEBUG") && strings.Contains(line, `"time"`) && !l.verbose
		if strings.Contains(line, text) && !lost && !low {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

// The second part of a batch must not run before the first part, in which a message failed, runs again.
func TestSplitOrder_eachSequenceOfRuns_isJudged(t *testing.T) {
	t.Parallel()
	began := time.Unix(1000, 0)
	const failed, second, again, third = "1", "2", "3", "4" // invocations, in the order of their start
	run := func(name int, invocation string, receives int, received time.Duration) probefunction.Record {
		started, _ := time.ParseDuration(invocation + "m")
		return probefunction.Record{
			Task: probefunction.Task{Name: strconv.Itoa(name)}, Invocation: invocation, Receives: receives,
			FirstReceivedAt: began.Add(received), StartedAt: began.Add(started + time.Duration(name)*time.Second),
		}
	}
	// runs returns those of a batch whose messages from split on were in another invocation.
	runs := func(split int, other string, received time.Duration) (all []probefunction.Record) {
		all = append(all, run(0, "0", 1, 0), run(0, failed, 2, 0))
		for n := 1; n < split; n++ {
			all = append(all, run(n, failed, 1, 0))
		}
		for n := 1; n < split; n++ {
			all = append(all, run(n, again, 2, 0))
		}
		for n := split; n < splitMessages; n++ {
			all = append(all, run(n, other, 1, received))
		}
		return all
	}
	late := runs(6, third, 0)
	for i := range late {
		if late[i].Name == "1" {
			late[i].Receives++
		}
	}
	for want, c := range map[string]struct {
		all       []probefunction.Record
		undecided bool
	}{
		"":                                   {all: runs(6, third, 0)},
		"message 6 ran before message 5":     {all: runs(6, second, 0)},
		"one invocation had the whole batch": {all: runs(9, third, 0), undecided: true},
		"the messages were not received together":         {all: runs(6, third, time.Minute), undecided: true},
		"message 8 did not arrive":                        {all: runs(6, third, 0)[:14], undecided: true},
		"receive 1 of message 1 did not run the function": {all: late, undecided: true},
		"message 1 of the failed invocation did not arrive again": {
			all: slices.Concat(runs(6, third, 0)[:7], runs(6, third, 0)[12:]), undecided: true,
		},
	} {
		_, err := splitOrder(c.all, "1")
		_, open := errors.AsType[*UndecidedError](err)
		if open != c.undecided || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// simulatedMetrics has the values of a metric after a minute, and the state of the alarm for which missing data is
// breaching.
type simulatedMetrics struct {
	values    float64
	disabled  float64 // values of the metrics of a disabled rule and of a line that is not filtered
	uncounted string  // the operation whose throttled requests are not counted
	breaching string
}

func (m *simulatedMetrics) AlarmStates(_ context.Context, names ...string) (map[string]string, error) {
	all := map[string]string{"breaching": m.breaching, "not breaching": "OK"}
	maps.DeleteFunc(all, func(name, _ string) bool { return !slices.Contains(names, name) })
	return all, nil
}

// deniedMetrics is an account without permissions for CloudWatch.
type deniedMetrics struct{}

func (deniedMetrics) Total(context.Context, Metric, time.Time) (float64, error) {
	return 0, errDenied
}

func (deniedMetrics) AlarmStates(context.Context, ...string) (map[string]string, error) {
	return nil, errDenied
}

func (m *simulatedMetrics) Total(_ context.Context, of Metric, since time.Time) (float64, error) {
	switch {
	case of.Dimensions["RuleName"] == "disabled", strings.HasSuffix(of.Dimensions[FilteredDimension], "-ignored"):
		return m.disabled, nil
	case of.Dimensions["Operation"] != "" && of.Dimensions["Operation"] == m.uncounted:
		return 0, nil
	}
	if time.Since(since) < time.Minute {
		return 0, nil
	}
	return m.values, nil
}

func TestFunctionProbes_accountDiffers_checkReportsIt(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		check   string
		mistake mistake
	}{
		"arrived 1 of 2 times":                     {"mapping-partial", mistake{complete: true}},
		"arrived 2 times after an empty list":      {"mapping-partial", mistake{empty: true}},
		"timeout of 6 s (unchanged) arrived":       {"mapping-visibility", mistake{visible: true}},
		"timeout of 1 s (shorter0) arrived after":  {"mapping-visibility", mistake{deaf: true}},
		"a message of another group arrived 2":     {"mapping-groups", mistake{strict: true}},
		`message "other-0" arrived 2 times`:        {"mapping-early-delete", mistake{deleted: true}},
		"invocations are concurrent":               {"mapping-concurrency", mistake{unlimited: true}},
		"receive 1 of a message ends 9s after the": {"mapping-concurrency", mistake{held: true}},
		"receive 2 of a message ends 11s after th": {"mapping-concurrency", mistake{empty: true}},
		"for 6 s each, is a dead letter after":     {"mapping-throttle", mistake{released: true}},
		"counted 0 ticks in the next invocation":   {"lambda-freeze", mistake{forgetful: true}},
		"ticks between two invocations":            {"lambda-freeze", mistake{thawed: true}},
		"the clock of the function advanced by":    {"lambda-freeze", mistake{wrongClock: true}},
		"the function failed":                      {"lambda-deadline", mistake{early: true}},
		"a timeout of 6s ended after 12s":          {"lambda-deadline", mistake{late: true}},
		"the error of a timeout is":                {"lambda-deadline", mistake{otherText: true}},
		"a line without a level is not in the log": {"lambda-log-level", mistake{unlogged: "-plain"}},
		"a line without a time is not in the log":  {"lambda-log-level", mistake{unlogged: "-untimed"}},
		"the error of an invocation is not in":     {"lambda-log-level", mistake{unlogged: "-rejected"}},
		"exceeds its timeout is not in the log":    {"lambda-log-level", mistake{unlogged: "request-"}},
		"a failed invocation was repeated after":   {"lambda-async", mistake{repeated: true}},
		"a response of 6600000 bytes in JSON is":   {"lambda-size", mistake{largest: true}},
		"a request of 6600000 bytes is accepted":   {"lambda-size", mistake{largestRequest: true}},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, err := runFunctionCheck(t, c.check, c.mistake)
				if _, open := errors.AsType[*UndecidedError](err); err == nil || open ||
					!strings.Contains(err.Error(), want) {
					t.Errorf("%s: got %v", c.check, err)
				}
			})
		})
	}
}

// runFunctionCheck runs a check with a function that Lambda treats in another way.
func runFunctionCheck(t *testing.T, name string, m mistake) (string, error) {
	t.Helper()
	p := simulated(t, nil)
	f, _ := p.Functions.(*simulatedFunction)
	f.mistake = m
	f.serve(t)
	return p.check(name).Run(t.Context())
}

// check returns the check with a name.
func (p *Probes) check(name string) *Check {
	all := p.all()
	return &all[slices.IndexFunc(all, func(c Check) bool { return c.Name == name })]
}

func TestFunctionProbes_permissionsDiffer_checkReportsIt(t *testing.T) {
	t.Parallel()
	for want, permissions := range map[string]limitedTable{
		`a put of ["other"] is allowed`:                            {all: true},
		`a put of ["records-iam-leading-keys" "other"] is allowed`: {first: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := simulated(t, nil)
			f, _ := p.Functions.(*simulatedFunction)
			f.serve(t)
			permissions.TableAPI = p.Table
			f.Table = &permissions
			_, err := p.check("iam-leading-keys").Run(t.Context())
			if _, open := errors.AsType[*UndecidedError](err); err == nil || open || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

func TestFunctionProbes_metricLacksValues_checkReportsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := simulated(t, nil)
		f, _ := p.Functions.(*simulatedFunction)
		f.serve(t)
		p.Metrics = &simulatedMetrics{values: 1}
		_, err := p.check("cloudwatch-metrics").Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "has 1 of 100 values after 5m0s") {
			t.Errorf("got %v", err)
		}
	})
}

// Observations with another cause show nothing.
func TestFunctionProbes_otherCause_isUndecided(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		check   string
		mistake mistake
	}{
		"the next invocation ran in another environment": {"lambda-freeze", mistake{otherEnv: true}},
		"receive 1 of message":                           {"mapping-visibility", mistake{dropped: true}},
		"message 8 did not arrive in 3m0s":               {"mapping-split", mistake{tooLarge: true}},
		"the function ran":                               {"mapping-throttle", mistake{unthrottled: true}},
		"the message is not in the dead-letter queue":    {"mapping-throttle", mistake{unreceived: true}},
		"a line of a lower level is in the log too":      {"lambda-log-level", mistake{verbose: true}},
		"is not in the log after 2m0s":                   {"lambda-log-level", mistake{unlogged: "e"}},
		"OutOfMemory":                                    {"lambda-size", mistake{failing: true}},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, err := runFunctionCheck(t, c.check, c.mistake)
			if _, open := errors.AsType[*UndecidedError](err); !open || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", c.check, err, want)
			}
		})
	}
}

// A function that never runs shows nothing.
func TestFunctionProbes_functionDoesNotRun_isUndecided(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"mapping-partial", "mapping-visibility", "mapping-groups", "mapping-early-delete", "mapping-concurrency",
		"sqs-dedup-window", "mapping-split",
	} {
		synctest.Test(t, func(t *testing.T) {
			_, err := simulated(t, nil).check(name).Run(t.Context())
			if _, open := errors.AsType[*UndecidedError](err); !open || !strings.Contains(err.Error(), "did not arrive") {
				t.Errorf("%s: got %v", name, err)
			}
		})
	}
}

// all returns all checks.
func (p *Probes) all() []Check {
	checks, slow := p.All()
	return slices.Concat(slices.Concat(checks...), slices.Concat(slow...))
}
