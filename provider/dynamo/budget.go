package dynamo

import (
	"context"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// repeatsInVain is how many calls an operation of many may repeat more than have succeeded. With the sixteen that a list makes at once, a table that
// throttles everything is asked twenty times.
const repeatsInVain = 4

// budget bounds what an operation repeats that makes calls side by side: each of them would else be made again for itself, at the
// very moment at which the table has too much to do. A nil budget bounds nothing.
type budget struct {
	mu   sync.Mutex
	left int
	why  error // what the last call failed with that could not be repeated
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

// spent is why the operation has failed, and makes no more calls.
func (b *budget) spent() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.why == nil {
		return nil
	}
	return fmt.Errorf("no call was made any more, after others had failed: %w", b.why)
}

// earn notes that a call has succeeded.
func (b *budget) earn() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left++
}

// spend reports whether a call that has failed may be made again.
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

// askOnce takes from the SDK's clients their own retries: what is worth repeating is repeated in one place (call).
func askOnce(c Clients) Clients {
	if table, ok := c.Table.(*dynamodb.Client); ok {
		c.Table = dynamodb.New(table.Options(), func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	}
	if queues, ok := c.Queues.(*sqs.Client); ok {
		c.Queues = sqs.New(queues.Options(), func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
	}
	if schedules, ok := c.Schedules.(*scheduler.Client); ok {
		c.Schedules = scheduler.New(schedules.Options(), func(o *scheduler.Options) { o.Retryer = aws.NopRetryer{} })
	}
	return c
}
