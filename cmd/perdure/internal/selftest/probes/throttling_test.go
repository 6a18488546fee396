package probes

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider/dynamo"
)

const indexThrottled = "IndexWriteProvisionedThroughputExceeded"

// throttledTable has write units for writes to the table that is throttled.
type throttledTable struct {
	dynamo.TableAPI

	units int
	// the reason of a throttled put, and the code and message of a throttled transaction
	put, code, message string
}

// take takes the units for an item of 10 KB.
func (t *throttledTable) take(n int) bool {
	t.units -= n
	return t.units >= 0
}

func (t *throttledTable) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	if *in.TableName != "throttled" {
		return t.TableAPI.PutItem(ctx, in, opts...)
	}
	if !t.take(10) {
		return nil, &types.ProvisionedThroughputExceededException{
			ThrottlingReasons: []types.ThrottlingReason{{Reason: &t.put}},
		}
	}
	return &dynamodb.PutItemOutput{}, nil
}

func (t *throttledTable) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	if put := in.TransactItems[0].Put; put == nil || *put.TableName != "throttled" {
		return t.TableAPI.TransactWriteItems(ctx, in, opts...)
	}
	if !t.take(20) {
		return nil, &types.TransactionCanceledException{
			CancellationReasons: []types.CancellationReason{{Code: &t.code, Message: &t.message}},
		}
	}
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

func TestTableProbes_partitionIsThrottled_checkReportsIt(t *testing.T) {
	t.Parallel()
	for operation, want := range map[string]string{
		"PutItem": "70 of 350 writes of 25 units in 9.772s were throttled",
		"Query":   "20 of 100 reads of 250 units in 9.9s were throttled",
	} {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int64
			p := simulated(t, func(_ context.Context, c simaws.Call, call func() error) error {
				if c.Operation == operation && calls.Add(1)%5 == 0 {
					return &types.ProvisionedThroughputExceededException{}
				}
				return call()
			})
			_, err := p.check("dynamodb-partition").Run(t.Context())
			if err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

// A table that is not throttled, or that fails for another reason, shows nothing.
func TestThrottleProbes_noThrottledWrite_isUndecided(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		table throttledTable
		want  string
	}{
		"no throttling": {throttledTable{units: 1_000_000}, "none of 75 calls of PutItem with 10000 bytes is throttled"},
		"put by the table": {
			throttledTable{put: "TableWriteProvisionedThroughputExceeded"}, "ProvisionedThroughputExceededException",
		},
		"transaction by the table": {
			throttledTable{put: indexThrottled, code: throttledCode, message: "throughput for the table was exceeded"},
			"TransactionCanceledException",
		},
		"failed condition": {throttledTable{put: indexThrottled, code: conditionFailed}, "TransactionCanceledException"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := simulated(t, nil)
			c.table.TableAPI, p.Table = p.Table, &c.table
			_, err := p.check("dynamodb-throttle-metric").Run(t.Context())
			if _, open := errors.AsType[*UndecidedError](err); !open || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %s", name, err, c.want)
			}
		})
	}
}
