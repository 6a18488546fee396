package dynamo

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/provider"
)

// A request to end or pause an instance waits in its message group while an invocation runs inline activities, because
// no process can receive it. The sender therefore writes an item that such an invocation reads to find out that it
// should yield (R20). The item has a partition of its own, so that a role can be restricted to these writes.
const (
	interruptionPrefix = "n#"
	skInterruption     = "n"
	attrAskedAt        = "askedAt" // in milliseconds
	// interruptionLife is the time after which the item expires. It has no purpose after its message was received.
	interruptionLife = time.Hour
	// noteLimit limits the time of all these writes of a call, because the message itself is more important.
	noteLimit = time.Second
)

func interruptionKey(instanceID string) item {
	return item{attrPK: str(interruptionPrefix + instanceID), attrSK: str(skInterruption)}
}

// noteInterruptions writes the items for the messages that interrupt, one per instance. A failure is not an error: the
// message is sent anyway, and is received when the inline activities of the invocation have ended. A failure must not
// delay the message.
func (p *Provider) noteInterruptions(ctx context.Context, ms []provider.Message) {
	if !slices.ContainsFunc(ms, func(m provider.Message) bool { return m.Interrupts() }) {
		return
	}
	ctx, stop := context.WithTimeout(ctx, noteLimit)
	defer stop()
	noted := map[string]bool{}
	for i := range ms {
		if id := ms[i].InstanceID; ms[i].Interrupts() && !noted[id] && ctx.Err() == nil {
			noted[id] = true
			now := p.now()
			it := interruptionKey(id)
			it[attrAskedAt], it[attrTTL] = num(now.UnixMilli()), unix(now.Add(interruptionLife))
			_ = call(ctx, "DynamoDB.PutItem", id, func() error {
				_, err := p.table.PutItem(ctx, &dynamodb.PutItemInput{TableName: &p.hub.Table, Item: it})
				return err
			})
		}
	}
}

// ReadInterruption reads the item that EnqueueForOrchestrator wrote.
func (p *Provider) ReadInterruption(ctx context.Context, instanceID string) (at time.Time, err error) {
	var out *dynamodb.GetItemOutput
	err = call(ctx, "DynamoDB.GetItem", instanceID, func() (err error) {
		out, err = p.table.GetItem(ctx, &dynamodb.GetItemInput{TableName: &p.hub.Table, Key: interruptionKey(instanceID), ConsistentRead: aws.Bool(true)})
		return err
	})
	if err != nil || getNumber(out.Item, attrAskedAt) == 0 {
		return time.Time{}, err
	}
	return time.UnixMilli(getNumber(out.Item, attrAskedAt)).UTC(), nil
}
