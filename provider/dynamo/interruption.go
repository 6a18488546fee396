package dynamo

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/provider"
)

// A message that asks an instance to end or to pause waits in its group while an invocation runs inline activities, and nobody can receive it.
// So that it was sent is noted in an item beside the instance, by which such an invocation makes way (R20). It has a partition of its own, so that
// a role may be permitted to write these notes alone.
const (
	interruptionPrefix = "n#"
	skInterruption     = "n"
	attrAskedAt        = "askedAt" // in milliseconds
	// interruptionLife is how long a note is kept. It is of no use as soon as its message was received.
	interruptionLife = time.Hour
	// noteLimit is how long notes may take, all those of a call together: the message itself matters more.
	noteLimit = time.Second
)

func interruptionKey(instanceID string) item {
	return item{attrPK: str(interruptionPrefix + instanceID), attrSK: str(skInterruption)}
}

// noteInterruptions notes what the messages interrupt, once for each instance. What fails is no error: the message is sent all the same, and is received
// when the steps of the invocation that holds its group are over. Nor may it hold that up.
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
