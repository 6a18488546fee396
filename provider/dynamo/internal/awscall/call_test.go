package awscall_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

func cancelledFor(codes ...string) error {
	e := &types.TransactionCanceledException{}
	for _, code := range codes {
		e.CancellationReasons = append(e.CancellationReasons, types.CancellationReason{
			Code: &code, Item: table.Item{"reason": table.Str(code)},
		})
	}
	return &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "TransactWriteItems", Err: e}
}

// R7: after a transaction conflict or throttling, the same request is retried. Other requests are not retried.
func TestIsRetryable_eachError_isClassified(t *testing.T) {
	t.Parallel()
	api := func(code string) error { return &smithy.GenericAPIError{Code: code} }
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"transaction conflict":             {&types.TransactionConflictException{}, true},
		"transaction in progress":          {&types.TransactionInProgressException{}, true},
		"throughput":                       {&types.ProvisionedThroughputExceededException{}, true},
		"request limit":                    {&types.RequestLimitExceeded{}, true},
		"throttled":                        {api("ThrottlingException"), true},
		"SQS throttled":                    {api("RequestThrottled"), true},
		"connection reset":                 {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, true},
		"some of a batch":                  {&sqsqueue.PartialError{}, true},
		"some of a batch, by its fault":    {&sqsqueue.PartialError{Fault: true}, false},
		"condition":                        {&types.ConditionalCheckFailedException{}, false},
		"validation":                       {api("ValidationException"), false},
		"access":                           {api("AccessDeniedException"), false},
		"no table":                         {&types.ResourceNotFoundException{}, false},
		"anything":                         {errors.New("anything"), false},
		"transaction: conflict":            {cancelledFor("None", "TransactionConflict"), true},
		"transaction: throttled":           {cancelledFor("ThrottlingError", "None"), true},
		"transaction: throughput":          {cancelledFor("ProvisionedThroughputExceeded"), true},
		"transaction: condition":           {cancelledFor("ConditionalCheckFailed", "None"), false},
		"transaction: condition, and more": {cancelledFor("TransactionConflict", "ConditionalCheckFailed"), false},
		"transaction: validation":          {cancelledFor("ValidationError"), false},
		"transaction: no reason":           {cancelledFor("None"), false},
	} {
		if got := awscall.IsRetryable(c.err); got != c.want {
			t.Errorf("%s: retryable %v, want %v", name, got, c.want)
		}
	}
}

func TestFailedItem_conditionFails_returnsTheItem(t *testing.T) {
	t.Parallel()
	one := &types.ConditionalCheckFailedException{Item: table.Item{"a": table.Str("1")}}
	if it, refused := table.FailedItem(&smithy.OperationError{Err: one}, 0); !refused ||
		table.GetString(it, "a") != "1" {
		t.Errorf("failed condition: item %v, failed %v", it, refused)
	}
	if it, refused := table.FailedItem(cancelledFor("ConditionalCheckFailed", "None"), 0); !refused ||
		table.GetString(it, "reason") == "" {
		t.Errorf("first item of a transaction: item %v, failed %v", it, refused)
	}
	if it, refused := table.FailedItem(cancelledFor("None", "ConditionalCheckFailed"), 1); !refused ||
		table.GetString(it, "reason") != "ConditionalCheckFailed" {
		t.Errorf("second item of a transaction: item %v, failed %v", it, refused)
	}
	for name, err := range map[string]error{
		"another item of the transaction": cancelledFor("None", "ConditionalCheckFailed"),
		"conflict":                        cancelledFor("TransactionConflict"),
		"no reasons":                      cancelledFor(), "another error": errors.New("other"), "none": nil,
	} {
		if it, refused := table.FailedItem(err, 0); refused {
			t.Errorf("%s: returned the item %v", name, it)
		}
	}
}

func TestDo_retryableError_retriesWithGrowingPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		err := awscall.Do(t.Context(), "S.Op", "a", func() error {
			at = append(at, time.Now())
			return &types.RequestLimitExceeded{Message: aws.String("slow down")}
		})
		if e, ok := errors.AsType[*provider.Error](err); !ok || !e.Retryable || e.Op != "S.Op" || e.InstanceID != "a" ||
			len(at) != awscall.MaxTries {
			t.Errorf("%d tries, %v", len(at), err)
		}
		pause := awscall.FirstPause
		for n := 1; n < len(at); n++ {
			if d := at[n].Sub(at[n-1]); d < pause/2 || d > pause*3/2 {
				t.Errorf("pause %d is %v, want about %v", n, d, pause)
			}
			pause *= 2
		}
	})
}

func TestDo_successOrPermanentError_stopsRetrying(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, last := range map[string]error{
			"success": nil, "permanent": &smithy.GenericAPIError{Code: "AccessDeniedException"},
		} {
			tries := 0
			err := awscall.Do(t.Context(), "S.Op", "", func() error {
				if tries++; tries < 3 {
					return &types.TransactionConflictException{}
				}
				return last
			})
			e, failed := errors.AsType[*provider.Error](err)
			if tries != 3 || failed != (last != nil) || failed && e.Retryable {
				t.Errorf("%s: %d tries, %v", name, tries, err)
			}
		}
	})
}

func TestDo_contextEnds_stopsRetrying(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("the invocation ends")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(12*time.Millisecond, func() { cancel(cause) })
		began, tries := time.Now(), 0
		err := awscall.Do(ctx, "S.Op", "", func() error { tries++; return &types.TransactionConflictException{} })
		if e, ok := errors.AsType[*provider.Error](err); !ok || !e.Retryable ||
			time.Since(began) > 15*time.Millisecond || tries > 2 {
			t.Errorf("%v after %v and %d tries", err, time.Since(began), tries)
		}
		if _, conflict := errors.AsType[*types.TransactionConflictException](err); !errors.Is(err, cause) && !conflict {
			t.Errorf("the error contains neither the cause of the end nor the failure: %v", err)
		}
	})
}
