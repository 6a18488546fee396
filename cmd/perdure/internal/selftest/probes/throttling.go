package probes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider/dynamo"
)

// Provisioned write units of a table and its index. Those of the table suffice for the writes that exhaust the index.
const (
	TableUnits = 10
	IndexUnits = 1
)

// throttledCode is the reason of a transaction that exceeds provisioned units.
const throttledCode = "ProvisionedThroughputExceeded"

// throttleProbes checks assumptions about the metrics of a throttled table.
type throttleProbes struct {
	clock

	Table   dynamo.TableAPI
	Name    string
	Metrics MetricAPI
}

func (p *throttleProbes) slowChecks() []Check {
	return []Check{{Name: "dynamodb-throttle-metric", Assumptions: []string{"A92"}, Run: p.metric, Slow: true}}
}

// metric writes items until the index throttles a put and a transaction. Then the metric of the table must count both.
func (p *throttleProbes) metric(ctx context.Context) (string, error) {
	const limit, pause = 6 * time.Minute, 15 * time.Second
	began := p.Now()
	writes := []struct {
		operation string
		write     func(context.Context, item) error
	}{{"PutItem", p.put}, {"TransactWriteItems", p.transact}}
	for _, w := range writes {
		if err := p.exhaust(ctx, w.operation, w.write); err != nil {
			return "", undecided(err)
		}
	}
	if err := p.untilRead(ctx, limit, pause, func() (missing, err error) {
		for _, w := range writes {
			n, err := p.Metrics.Total(ctx, Metric{
				Namespace: "AWS/DynamoDB", Name: "ThrottledRequests", Statistic: "Sum",
				Dimensions: map[string]string{"TableName": p.Name, "Operation": w.operation},
			}, began)
			switch {
			case err != nil:
				return nil, err
			case n == 0:
				return fmt.Errorf("the metric does not count a throttled %s after %v", w.operation, limit), nil
			}
		}
		return nil, nil
	}); err != nil {
		return "", err
	}
	return fmt.Sprintf("a put and a transaction are counted after %v", p.Now().Sub(began).Round(time.Second)), nil
}

// exhaust writes items until the index throttles a write. A write takes ten units, in a transaction 20.
func (p *throttleProbes) exhaust(ctx context.Context, operation string, write func(context.Context, item) error) error {
	const bytes, pause, most = 10_000, 2 * time.Second, 75 // the index saves up to five minutes of its units
	for n := range most {
		i := valued("throttled", operation+strconv.Itoa(n), strings.Repeat("x", bytes)) // an equal item costs nothing
		i["gs"] = text("throttled")
		err := write(ctx, i)
		switch {
		case isThrottledByIndex(err):
			return nil
		case err != nil:
			return err
		}
		if err := p.Sleep(ctx, pause); err != nil {
			return err
		}
	}
	return fmt.Errorf("none of %d calls of %s with %d bytes is throttled", most, operation, bytes)
}

// isThrottledByIndex reports whether an index throttled a write.
func isThrottledByIndex(err error) bool {
	if e, ok := errors.AsType[*types.ProvisionedThroughputExceededException](err); ok {
		return slices.ContainsFunc(e.ThrottlingReasons, func(r types.ThrottlingReason) bool {
			return strings.HasPrefix(aws.ToString(r.Reason), "IndexWrite")
		})
	}
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	return ok && slices.ContainsFunc(cancelled.CancellationReasons, func(r types.CancellationReason) bool {
		return aws.ToString(r.Code) == throttledCode &&
			strings.Contains(aws.ToString(r.Message), "global secondary index")
	})
}

func (p *throttleProbes) put(ctx context.Context, i item) error {
	_, err := p.Table.PutItem(ctx, &dynamodb.PutItemInput{TableName: &p.Name, Item: i}, notRepeated)
	return err
}

func (p *throttleProbes) transact(ctx context.Context, i item) error {
	put := types.TransactWriteItem{Put: &types.Put{TableName: &p.Name, Item: i}}
	_, err := p.Table.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{put},
	}, notRepeated)
	return err
}
