package dynamo

import (
	"context"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// repeatsInVain is how many more calls an operation of many calls may repeat than have succeeded. With the sixteen
// concurrent calls of a list, a table that throttles everything receives twenty calls.
const repeatsInVain = 4

// budget bounds the repetitions of an operation that makes concurrent calls: otherwise each call would be repeated on
// its own, at the very moment at which the table is overloaded. A nil budget bounds nothing.
type budget struct {
	mu   sync.Mutex
	left int
	why  error // the error of the last call that could not be repeated
}

type budgetKey struct{}

// withBudget begins an operation.
func withBudget(ctx context.Context) context.Context {
	return context.WithValue(ctx, budgetKey{}, &budget{left: repeatsInVain})
}

func budgetOf(ctx context.Context) *budget {
	b, _ := ctx.Value(budgetKey{}).(*budget)
	return b
}

// spent returns why the operation has failed and makes no more calls; nil while it may make some.
func (b *budget) spent() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.why == nil {
		return nil
	}
	return fmt.Errorf("retry budget exhausted, last error: %w", b.why)
}

// earn records that a call has succeeded.
func (b *budget) earn() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left++
}

// spend reports whether a failed call may be made again.
func (b *budget) spend(err error) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left == 0 || b.why != nil {
		b.why = err
		return false
	}
	b.left--
	return true
}

// withoutRetries switches off the retries of the SDK's clients: what is worth repeating is repeated in one place
// (call).
func withoutRetries(c Clients) Clients {
	if table, ok := c.Table.(*dynamodb.Client); ok {
		c.Table = dynamodb.New(table.Options(), func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	}
	if queues, ok := c.Queues.(*sqs.Client); ok {
		c.Queues = sqs.New(queues.Options(), func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
	}
	if schedules, ok := c.Schedules.(*scheduler.Client); ok {
		c.Schedules = scheduler.New(schedules.Options(), func(o *scheduler.Options) { o.Retryer = aws.NopRetryer{} })
	}
	if functions, ok := c.Functions.(*lambda.Client); ok {
		c.Functions = lambda.New(functions.Options(), func(o *lambda.Options) { o.Retryer = aws.NopRetryer{} })
	}
	return c
}
