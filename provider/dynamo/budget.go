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

// repeatsInVain is the number of repetitions that an operation with several calls may make in excess of its successful
// calls. With the sixteen concurrent calls of a list, a table that throttles everything receives twenty calls.
const repeatsInVain = 4

// budget limits the repetitions of an operation with concurrent calls. Otherwise each call would be repeated separately
// while the table is overloaded. A nil budget has no limit.
type budget struct {
	mu   sync.Mutex
	left int
	why  error // the error of the last call that was not repeated
}

type budgetKey struct{}

// withBudget returns a context for an operation with a new budget.
func withBudget(ctx context.Context) context.Context {
	return context.WithValue(ctx, budgetKey{}, &budget{left: repeatsInVain})
}

func budgetOf(ctx context.Context) *budget {
	b, _ := ctx.Value(budgetKey{}).(*budget)
	return b
}

// spent returns the reason why the operation may make no more calls, or nil if it may.
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

// earn records a successful call.
func (b *budget) earn() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left++
}

// spend reports whether a failed call may be repeated.
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

// withoutRetries disables the retries of the SDK's clients, because call is the only place that repeats calls.
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
