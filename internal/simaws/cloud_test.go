package simaws_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/simaws"
)

var errLost = errors.New("connection reset")

func TestInterceptor_failsCallOrLosesResponse_itsErrorIsReturned(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		intercept simaws.Interceptor
		want      error
		applied   bool
	}{
		"passes":  {func(_ context.Context, _ simaws.Call, next func() error) error { return next() }, nil, true},
		"refuses": {func(context.Context, simaws.Call, func() error) error { return errLost }, errLost, false},
		"loses the response": {func(_ context.Context, _ simaws.Call, next func() error) error {
			return errors.Join(next(), errLost)
		}, errLost, true},
		"is silent": {func(_ context.Context, _ simaws.Call, next func() error) error {
			_ = next()

			return nil
		}, nil, true},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			on := false
			c := simaws.New(simaws.WithInterceptor(func(
				ctx context.Context, call simaws.Call, next func() error,
			) error {
				if !on {
					return next()
				}

				return tt.intercept(ctx, call, next)
			}))

			on = true
			_, err := c.Table.PutItem(t.Context(), &dynamodb.PutItemInput{Item: key("1")})
			on = false

			if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("error %v, want %v", err, tt.want)
			}

			if applied := get(t, c, key("1")) != nil; applied != tt.applied {
				t.Errorf("applied: %v", applied)
			}
		})
	}
}

func TestInterceptor_hidesFailureOrSkipsCall_errorIsReturned(t *testing.T) {
	t.Parallel()

	silent := func(_ context.Context, _ simaws.Call, next func() error) error {
		_ = next()

		return nil
	}
	_, err := simaws.New(simaws.WithInterceptor(silent)).Table.PutItem(t.Context(),
		&dynamodb.PutItemInput{Item: item{}})
	wantCode(t, err, isInvalid)

	forgetful := func(context.Context, simaws.Call, func() error) error { return nil }
	_, err = simaws.New(simaws.WithInterceptor(forgetful)).Table.PutItem(t.Context(),
		&dynamodb.PutItemInput{Item: key("1")})

	if err == nil {
		t.Fatal("a call that never ran succeeded")
	}
}

func TestInterceptor_callsOfAllServices_areSeenAndCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := []string{}
		numbers := []int64{}
		c := simaws.New(simaws.WithInterceptor(func(_ context.Context, call simaws.Call, next func() error) error {
			calls = append(calls, call.Service+"."+call.Operation)
			numbers = append(numbers, call.Number)

			return next()
		}))
		d := &desk{tb: t, cloud: c, url: c.Queues.Create("work", simaws.QueueConfig{})}
		f := &function{}
		c.Map(d.url, simaws.Mapping{Invoke: f.invoke})

		put(t, c, key("1"))
		d.send("x")
		drive(c)

		want := []string{"DynamoDB.PutItem", "SQS.SendMessage", "Lambda.Invoke", "Lambda.DeleteMessageBatch"}
		if diff := cmp.Diff(want, calls); diff != "" {
			t.Error(diff)
		}

		if diff := cmp.Diff([]int64{1, 2, 3, 4}, numbers); diff != "" {
			t.Error(diff)
		}

		counts := map[string]int64{
			"DynamoDB.PutItem": 1, "SQS.SendMessage": 1, "Lambda.Invoke": 1, "Lambda.DeleteMessageBatch": 1,
		}
		if diff := cmp.Diff(counts, c.Counts()); diff != "" {
			t.Error(diff)
		}

		c.ResetCounts()

		if left := c.Counts(); len(left) != 0 || c.Capacity() != (simaws.Capacity{}) {
			t.Error("calls after a reset", left)
		}
	})
}

// TestMapping_deleteIsLost_messageIsRedelivered loses the deletion of a batch after its function has succeeded.
func TestMapping_deleteIsLost_messageIsRedelivered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lost := false
		c := simaws.New(simaws.WithInterceptor(func(_ context.Context, call simaws.Call, next func() error) error {
			if call.Operation == "DeleteMessageBatch" && !lost {
				lost = true

				return errLost
			}

			return next()
		}))
		d := &desk{tb: t, cloud: c, url: c.Queues.Create("work", simaws.QueueConfig{VisibilityTimeout: time.Second})}
		f := &function{}
		c.Map(d.url, simaws.Mapping{Invoke: f.invoke})
		d.send("x")
		drive(c)
		time.Sleep(time.Second)
		drive(c)
		time.Sleep(time.Second)
		drive(c)
		f.want(t, "x", "x")
	})
}

func TestFaultErrors_haveTheCodesOfAWS(t *testing.T) {
	t.Parallel()

	wantCode(t, simaws.Throttled(), "ProvisionedThroughputExceededException")
	wantCode(t, simaws.WriteConflict(), "TransactionConflictException")

	codes, _ := reasons(t, simaws.TransactionConflict(3, 1))
	if !cmp.Equal(codes, []string{"None", "TransactionConflict", "None"}) {
		t.Error(codes)
	}

	codes, _ = reasons(t, simaws.TransactionConflict(2))
	if !cmp.Equal(codes, []string{"TransactionConflict", "TransactionConflict"}) {
		t.Error(codes)
	}
}

func TestPutItem_contextIsCancelled_writesNothing(t *testing.T) {
	t.Parallel()

	c := simaws.New()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	_, err := c.Table.PutItem(ctx, &dynamodb.PutItemInput{Item: key("1")})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}

	if get(t, c, key("1")) != nil {
		t.Fatal("the item was written after the cancellation")
	}
}

func TestDeleteItem_conditionFails_errorIsWrappedLikeInTheSDK(t *testing.T) {
	t.Parallel()

	condition := "attribute_exists(pk)"
	_, err := simaws.New().Table.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		Key: key("1"), ConditionExpression: &condition,
	})

	var operation *smithy.OperationError
	if !errors.As(err, &operation) || operation.Operation() != "DeleteItem" || operation.Service() != "DynamoDB" {
		t.Fatal(err)
	}

	if _, ok := errors.AsType[*ddbtypes.ConditionalCheckFailedException](err); !ok {
		t.Fatal(err)
	}
}
