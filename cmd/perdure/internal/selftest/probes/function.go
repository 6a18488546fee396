package probes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/cmd/perdure/internal/selftest/app/probefunction"
	"github.com/perdure/perdure/provider/dynamo"
)

const (
	// FunctionTimeout is the timeout of the probe function, and the visibility timeout of its queues, in seconds.
	FunctionTimeout = 6
	// FunctionConcurrency is the maximum concurrency of the mapping of the standard queue, whose batches have one
	// message.
	FunctionConcurrency = 2
)

// Settings of the queue whose function has no concurrency: its maxReceiveCount and its batch size.
const (
	ThrottledReceives = 5
	ThrottledBatch    = 1
)

// MappedBatch is the batch size of the FIFO queue.
const MappedBatch = 10

// FunctionConfig has the probe functions and the queues with a mapping.
type FunctionConfig struct {
	// MappedName is the function of the mappings. CalledName has the same code, and no mapping.
	MappedName, CalledName   string
	MappedURL, MappedFIFOURL string
	// ThrottledURL is a queue with a mapping to a function that has no concurrency. It moves messages to
	// ThrottledDeadURL after ThrottledReceives receives.
	ThrottledURL, ThrottledDeadURL string
	// MappedLogs is the log group of MappedName.
	MappedLogs string
}

// functionClient sends messages and calls to the probe functions, and reads what they have received.
type functionClient struct {
	clock

	FunctionConfig

	Functions dynamo.FunctionAPI
	Queues    *queueClient
	Table     *tableProbes
}

const (
	// receiveLimit is the time in which a failed message must arrive again. A mapping waits longer after failures.
	receiveLimit = time.Minute
	receivePause = 500 * time.Millisecond
	// clockDifference is the maximum difference between the clocks of SQS and of a function.
	clockDifference = time.Second
	// deliveryTime is the maximum time between the receive of a message and the start of its invocation.
	deliveryTime = 3 * time.Second
)

// functionError is an error of the function, or of Lambda instead of it.
type functionError struct{ text string }

func (e *functionError) Error() string { return "the function failed: " + e.text }

// isTimeout reports whether the error has the texts of a timeout that queries know.
func (e *functionError) isTimeout() bool {
	return strings.Contains(e.text, "Sandbox.Timedout") || strings.Contains(e.text, "Task timed out")
}

// isTooLarge reports whether Lambda rejected the response because of its size.
func (e *functionError) isTooLarge() bool { return strings.Contains(e.text, "TooLarge") }

// once disables the retries of the SDK.
func once(o *lambda.Options) { o.Retryer = aws.NopRetryer{} }

// sendTasks sends a batch of tasks to a queue of the function.
func (p *functionClient) sendTasks(ctx context.Context, url string, tasks ...probefunction.Task) error {
	entries := make([]types.SendMessageBatchRequestEntry, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		t.QueueURL = url
		body, err := json.Marshal(t)
		if err != nil {
			return fmt.Errorf("encode task: %w", err)
		}
		entries[i] = message(string(body))
		if url == p.MappedFIFOURL {
			entries[i] = grouped(string(body), t.Check+"-"+cmp.Or(t.Group, t.Name), t.Check+"-"+t.Name)
		}
	}
	_, err := p.Queues.send(ctx, url, entries...)
	return undecided(err)
}

// records returns the records of a check in the order of their start.
func (p *functionClient) records(ctx context.Context, check string) (all []probefunction.Record, err error) {
	out, err := p.Table.Table.Query(ctx, p.Table.of(probefunction.Partition(check)))
	if err != nil {
		return nil, undecided(err)
	}
	for _, i := range out.Items {
		var r probefunction.Record
		if err := json.Unmarshal([]byte(valueOf(i)), &r); err != nil {
			return nil, undecided(fmt.Errorf("decode record: %w", err))
		}
		all = append(all, r)
	}
	return all, nil
}

// receives returns the records of a task.
func receives(all []probefunction.Record, name string) []probefunction.Record {
	return slices.DeleteFunc(slices.Clone(all), func(r probefunction.Record) bool { return r.Name != name })
}

// await waits until the function has received each task of a check a number of times. It is undecided if a task never
// arrives, or if its first receive ran no code, for example because the account's concurrency was exhausted.
func (p *functionClient) await(
	ctx context.Context, check string, want map[string]int,
) (all []probefunction.Record, err error) {
	err = p.untilRead(ctx, receiveLimit, receivePause, func() (missing, err error) {
		if all, err = p.records(ctx, check); err != nil {
			return nil, err
		}
		for name, n := range want {
			switch got := receives(all, name); {
			case len(got) == 0:
				missing = undecided(fmt.Errorf("message %q did not arrive in %v", name, receiveLimit))
			case got[0].Receives > 1:
				return nil, fmt.Errorf("receive 1 of message %q did not run the function", name)
			case len(got) < n && missing == nil:
				missing = fmt.Errorf("message %q arrived %d of %d times in %v", name, len(got), n, receiveLimit)
			}
		}
		return missing, nil
	})
	return all, err
}

// settled returns the records of a check when failed messages have had the time to arrive again.
func (p *functionClient) settled(ctx context.Context, check string) ([]probefunction.Record, error) {
	if err := p.Sleep(ctx, FunctionTimeout*time.Second+deliveryTime); err != nil {
		return nil, undecided(err)
	}
	return p.records(ctx, check)
}

// call invokes the function without mapping.
func (p *functionClient) call(ctx context.Context, c *probefunction.Call) (*probefunction.Response, error) {
	return p.invoke(ctx, p.CalledName, c)
}

// sendEvent invokes a function with an event. The error is undecided.
func (p *functionClient) sendEvent(
	ctx context.Context, function string, event map[string]any,
) (*lambda.InvokeOutput, error) {
	payload, err := json.Marshal(event)
	if err != nil {
		return nil, undecided(fmt.Errorf("encode event: %w", err))
	}
	out, err := p.Functions.Invoke(ctx, &lambda.InvokeInput{FunctionName: &function, Payload: payload}, once)
	if err != nil {
		return nil, undecided(fmt.Errorf("invoke: %w", err))
	}
	return out, nil
}

// invoke invokes a function. The error is undecided. Its cause is a functionError if the function ended without a
// response.
func (p *functionClient) invoke(
	ctx context.Context, function string, c *probefunction.Call,
) (*probefunction.Response, error) {
	out, err := p.sendEvent(ctx, function, map[string]any{"call": c})
	if err != nil {
		return nil, err
	}
	if out.FunctionError != nil {
		return nil, undecided(&functionError{string(out.Payload)})
	}
	var r probefunction.Response
	if err := json.Unmarshal(out.Payload, &r); err != nil {
		return nil, undecided(fmt.Errorf("decode response: %w", err))
	}
	return &r, nil
}

// fail invokes the function with an event for which it fails, and returns the request ID.
func (p *functionClient) fail(ctx context.Context, event map[string]any) (requestID string, err error) {
	out, err := p.sendEvent(ctx, p.MappedName, event)
	if err != nil {
		return "", err
	}
	if out.FunctionError == nil {
		return "", undecided(errors.New("an invocation that should fail succeeds"))
	}
	requestID, ok := awsmiddleware.GetRequestIDMetadata(out.ResultMetadata)
	if !ok || requestID == "" {
		return "", undecided(errors.New("a failed invocation has no request ID"))
	}
	return requestID, nil
}
