package probes

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/perdure/perdure/cmd/perdure/internal/selftest/app/probefunction"
	"github.com/perdure/perdure/internal/simaws"
)

// simulatedFunction is the probe function. It implements dynamo.FunctionAPI with the limits of Lambda.
type simulatedFunction struct {
	probefunction.Function

	cloud   *simaws.Cloud
	config  FunctionConfig
	mistake mistake
	running sync.WaitGroup
}

// mistake is a difference between an account and the assumptions.
type mistake struct {
	visible    bool // failed messages are visible at once
	complete   bool // no message fails
	strict     bool // a failure fails the whole batch
	unlimited  bool // MaximumConcurrency is ignored
	forgetful  bool // goroutines end with the invocation
	wrongClock bool
	early      bool // an invocation ends before its deadline
	late       bool // an invocation ends after its deadline
	largest    bool // responses have no limit
	otherText  bool // of a timeout
	deleted    bool // a batch fails if the function deletes one of its messages
	otherEnv   bool // each invocation has a new environment
	denied     bool
}

// newFunction returns the probe function of a simulated account, with its queues.
func newFunction(cloud *simaws.Cloud, p *Probes) *simulatedFunction {
	timeout := FunctionTimeout * time.Second
	p.FunctionConfig = FunctionConfig{
		FunctionName: "probes",
		MappedURL:    cloud.Queues.Create("mapped", simaws.QueueConfig{VisibilityTimeout: timeout}),
		MappedFIFOURL: cloud.Queues.Create("mapped.fifo", simaws.QueueConfig{
			VisibilityTimeout: timeout, PerGroupDeduplication: true,
		}),
	}
	return &simulatedFunction{
		Function: probefunction.Function{Table: p.Table, Queues: p.Queues, TableName: p.TableName},
		cloud:    cloud, config: p.FunctionConfig,
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
	ctx, cancel := context.WithCancel(t.Context())
	f.running.Go(func() { f.cloud.Serve(ctx) })
	t.Cleanup(func() {
		cancel()
		f.running.Wait()
	})
}

func (f *simulatedFunction) handleMessages(ctx context.Context, messages []sqstypes.Message) ([]string, error) {
	id := *messages[0].MessageId + time.Now().String()
	e := &probefunction.Event{}
	for i := range messages {
		m := &messages[i]
		e.Records = append(e.Records, events.SQSMessage{
			MessageId: *m.MessageId, ReceiptHandle: *m.ReceiptHandle, Body: *m.Body, Attributes: m.Attributes,
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
	if f.mistake.visible {
		return failed, f.release(ctx, messages, failed)
	}
	if f.mistake.strict && len(failed) > 0 {
		return nil, errors.New("a message failed")
	}
	return failed, nil
}

// release makes failed messages visible.
func (f *simulatedFunction) release(ctx context.Context, messages []sqstypes.Message, failed []string) error {
	for i := range messages {
		if !slices.Contains(failed, *messages[i].MessageId) {
			continue
		}
		if _, err := f.Queues.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{
			QueueUrl: &f.config.MappedURL, Entries: []sqstypes.ChangeMessageVisibilityBatchRequestEntry{
				{Id: aws.String("0"), ReceiptHandle: messages[i].ReceiptHandle},
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
		return nil, &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no"}
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
		return &lambda.InvokeOutput{FunctionError: aws.String("Unhandled"), Payload: []byte(text)}, nil
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
	if f.mistake.forgetful {
		response.Joined = false
	}
	if f.mistake.wrongClock {
		response.Now = response.Now.Add(-time.Minute)
	}
	if f.mistake.otherEnv {
		response.Process += response.Now.String()
	}
	payload, err := json.Marshal(response)
	const most = 6<<20 + 100
	if len(payload) > most && !f.mistake.largest {
		return failed(`{"errorType":"Function.ResponseSizeTooLarge"}`)
	}
	return &lambda.InvokeOutput{Payload: payload}, err
}

func TestFunctionProbes_accountDiffers_checkReportsIt(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		check   string
		mistake mistake
	}{
		"arrived 1 of 2 times":                 {"mapping-partial", mistake{complete: true}},
		"with a visibility timeout of":         {"mapping-visibility", mistake{visible: true}},
		"a message of another group arrived 2": {"mapping-groups", mistake{strict: true}},
		`message "other-0" arrived 2 times`:    {"mapping-early-delete", mistake{deleted: true}},
		"invocations are concurrent":           {"mapping-concurrency", mistake{unlimited: true}},
		"did not continue":                     {"lambda-freeze", mistake{forgetful: true}},
		"the clock of the function was":        {"lambda-freeze", mistake{wrongClock: true}},
		"the function failed":                  {"lambda-deadline", mistake{early: true}},
		"responded 5 s after its deadline":     {"lambda-invoke", mistake{late: true}},
		"the error of a timeout is":            {"lambda-invoke", mistake{otherText: true}},
		"6600000 bytes in JSON is accepted":    {"lambda-response", mistake{largest: true}},
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
	all := slices.Concat(p.All()...)
	return all[slices.IndexFunc(all, func(c Check) bool { return c.Name == name })].Run(t.Context())
}

// An invocation in another environment shows nothing about frozen ones.
func TestFunctionProbes_otherEnvironment_isUndecided(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, err := runFunctionCheck(t, "lambda-freeze", mistake{otherEnv: true})
		if _, open := errors.AsType[*UndecidedError](err); !open {
			t.Errorf("got %v", err)
		}
	})
}
