package inbox

import (
	"context"
	"slices"
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// A request to end or pause an instance waits in its message group while an invocation runs inline activities, because
// no process can receive it. The sender therefore writes an item that requests such an invocation to yield (R20). The
// item has its own partition, so that a role can be restricted to these writes.
const (
	interruptionPrefix = "n#"
	skInterruption     = "n"
	attrRequestedAt    = "askedAt" // in milliseconds
	// interruptionLifetime is the time after which the item expires. After its message was received, the item has no
	// purpose.
	interruptionLifetime = time.Hour
	// interruptionTimeout limits the total time of these writes in a call, because the message itself is more
	// important.
	interruptionTimeout = time.Second
)

func interruptionKey(instanceID string) table.Item {
	return table.Key(interruptionPrefix+instanceID, skInterruption)
}

// noteInterruptions writes the items for the messages that interrupt, one per instance. A failure is not an error. The
// message is sent anyway, and is received after the inline activities of the invocation have ended. A failure must not
// delay the message.
func (ib *Inbox) noteInterruptions(ctx context.Context, ms []provider.Message) {
	if !slices.ContainsFunc(ms, func(m provider.Message) bool { return m.Interrupts() }) {
		return
	}
	ctx, stop := context.WithTimeout(ctx, interruptionTimeout)
	defer stop()
	noted := map[string]bool{}
	for i := range ms {
		if id := ms[i].InstanceID; ms[i].Interrupts() && !noted[id] && ctx.Err() == nil {
			noted[id] = true
			now := ib.now()
			it := interruptionKey(id)
			it[attrRequestedAt] = table.Num(now.UnixMilli())
			it[table.AttrTTL] = table.Unix(now.Add(interruptionLifetime))
			_ = ib.table.PutItem(ctx, id, it)
		}
	}
}

// ReadInterruption reads the item that EnqueueForOrchestrator wrote.
func (ib *Inbox) ReadInterruption(ctx context.Context, instanceID string) (at time.Time, err error) {
	found, err := ib.table.Get(ctx, instanceID, interruptionKey(instanceID), provider.Strong)
	if err != nil || table.GetNumber(found, attrRequestedAt) == 0 {
		return time.Time{}, err
	}
	return time.UnixMilli(table.GetNumber(found, attrRequestedAt)).UTC(), nil
}
