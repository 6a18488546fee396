package dynamotest

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/provider/providertest"
)

// faults makes calls of one hub fail as configured.
type faults struct {
	mu    sync.Mutex
	armed *armed
}

type armed struct {
	providertest.Fault

	hits, passed int
}

func (f *faults) arm(fault providertest.Fault) (hits func() int) {
	a := &armed{Fault: fault}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = a
	return func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return a.hits
	}
}

// next returns the failure of the next call of a kind, or "" if it succeeds.
func (f *faults) next(op providertest.Operation) providertest.Failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.armed
	switch {
	case a == nil || a.Operation != op || a.Times > 0 && a.hits >= a.Times:
		return ""
	case a.passed < a.After:
		a.passed++
		return ""
	default:
		a.hits++
		return a.Failure
	}
}

// through makes a call, unless the configuration requires it to fail.
func through[Out any](f *faults, op providertest.Operation, call func() (Out, error)) (Out, error) {
	var none Out
	switch f.next(op) {
	case providertest.Throttled:
		return none, &smithy.GenericAPIError{
			Code: "ThrottlingException", Message: "slow down", Fault: smithy.FaultClient,
		}
	case providertest.Rejected:
		return none, &smithy.GenericAPIError{
			Code: "AccessDeniedException", Message: "not allowed", Fault: smithy.FaultClient,
		}
	case providertest.ResponseLost:
		_, err := call()
		return none, errors.Join(&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}, err)
	default:
		return call()
	}
}

type faultyTable struct {
	dynamo.TableAPI

	faults *faults
}

func (t faultyTable) GetItem(
	ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.GetItemOutput, error) {
	return through(t.faults, providertest.Read, func() (*dynamodb.GetItemOutput, error) {
		return t.TableAPI.GetItem(ctx, in, opts...)
	})
}

func (t faultyTable) Query(
	ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options),
) (*dynamodb.QueryOutput, error) {
	return through(t.faults, providertest.Read, func() (*dynamodb.QueryOutput, error) {
		return t.TableAPI.Query(ctx, in, opts...)
	})
}

func (t faultyTable) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	return through(t.faults, providertest.Write, func() (*dynamodb.PutItemOutput, error) {
		return t.TableAPI.PutItem(ctx, in, opts...)
	})
}

// DeleteItem counts as a write.
func (t faultyTable) DeleteItem(
	ctx context.Context, in *dynamodb.DeleteItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.DeleteItemOutput, error) {
	return through(t.faults, providertest.Write, func() (*dynamodb.DeleteItemOutput, error) {
		return t.TableAPI.DeleteItem(ctx, in, opts...)
	})
}

func (t faultyTable) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	return through(t.faults, providertest.Update, func() (*dynamodb.UpdateItemOutput, error) {
		return t.TableAPI.UpdateItem(ctx, in, opts...)
	})
}

func (t faultyTable) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	return through(t.faults, providertest.Write, func() (*dynamodb.TransactWriteItemsOutput, error) {
		// A copy, because the SDK adds its token to the input, and a repetition with the token would never fail the
		// condition.
		again := *in
		return t.TableAPI.TransactWriteItems(ctx, &again, opts...)
	})
}

type faultyQueues struct {
	dynamo.QueueAPI

	faults *faults
}

func (q faultyQueues) SendMessageBatch(
	ctx context.Context, in *sqs.SendMessageBatchInput, opts ...func(*sqs.Options),
) (*sqs.SendMessageBatchOutput, error) {
	return through(q.faults, providertest.Send, func() (*sqs.SendMessageBatchOutput, error) {
		return q.QueueAPI.SendMessageBatch(ctx, in, opts...)
	})
}

func (q faultyQueues) ReceiveMessage(
	ctx context.Context, in *sqs.ReceiveMessageInput, opts ...func(*sqs.Options),
) (*sqs.ReceiveMessageOutput, error) {
	return through(q.faults, providertest.Receive, func() (*sqs.ReceiveMessageOutput, error) {
		return q.QueueAPI.ReceiveMessage(ctx, in, opts...)
	})
}

func (q faultyQueues) DeleteMessageBatch(
	ctx context.Context, in *sqs.DeleteMessageBatchInput, opts ...func(*sqs.Options),
) (*sqs.DeleteMessageBatchOutput, error) {
	return through(q.faults, providertest.Delete, func() (*sqs.DeleteMessageBatchOutput, error) {
		return q.QueueAPI.DeleteMessageBatch(ctx, in, opts...)
	})
}

func (q faultyQueues) ChangeMessageVisibilityBatch(
	ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, opts ...func(*sqs.Options),
) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return through(q.faults, providertest.Delay, func() (*sqs.ChangeMessageVisibilityBatchOutput, error) {
		return q.QueueAPI.ChangeMessageVisibilityBatch(ctx, in, opts...)
	})
}
