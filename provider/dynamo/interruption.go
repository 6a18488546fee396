package dynamo

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
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

func interruptionKey(instanceID string) table.Item {
	return table.Item{table.AttrPK: table.Str(interruptionPrefix + instanceID), table.AttrSK: table.Str(skInterruption)}
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
			it[attrAskedAt], it[table.AttrTTL] = table.Num(now.UnixMilli()), table.Unix(now.Add(interruptionLife))
			_ = p.table.Put(ctx, id, &dynamodb.PutItemInput{Item: it})
		}
	}
}

// ReadInterruption reads the item that EnqueueForOrchestrator wrote.
func (p *Provider) ReadInterruption(ctx context.Context, instanceID string) (at time.Time, err error) {
	found, err := p.table.Get(ctx, instanceID, interruptionKey(instanceID), provider.Strong)
	if err != nil || table.GetNumber(found, attrAskedAt) == 0 {
		return time.Time{}, err
	}
	return time.UnixMilli(table.GetNumber(found, attrAskedAt)).UTC(), nil
}
