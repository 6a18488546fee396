package dynamo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// deleteTries is the maximum number of times that a deletion starts again because the instance had a turn, or because
// another process deletes it too.
const deleteTries = 10

// DeleteInstance ends and marks the instance in one transaction and sends the outputs of its end. It then erases one
// execution after the other and leaves a tombstone (R17). The instance item stores the progress, so that any process
// can continue the deletion with another call.
func (p *Provider) DeleteInstance(ctx context.Context, instanceID string, force bool) error {
	return p.deleteLife(ctx, instanceID, "", force)
}

// deleteLife deletes the incarnation that the start life created, or the current incarnation if life is empty. It does
// not delete a later incarnation.
func (p *Provider) deleteLife(ctx context.Context, instanceID, life string, force bool) error {
	for range deleteTries {
		it, err := p.instances.Get(ctx, instanceID, provider.Strong)
		switch start := table.GetString(it, table.AttrStartID); {
		case life != "" && (errors.Is(err, provider.ErrNotFound) || err == nil && start != life):
			return nil // another process has finished the deletion
		case err != nil:
			return err
		default:
			life = start
		}

		if instances.IsDeleting(it) {
			err = p.finishDeletion(ctx, it)
		} else if err = p.condemn(ctx, it, force); err == nil {
			continue
		}
		if !errors.Is(err, errGoOn) {
			return err
		}
	}
	return &provider.Error{Op: "DeleteInstance", InstanceID: instanceID, Retryable: true, Err: provider.ErrConflict}
}

// errGoOn means that the instance has changed since it was read. The deletion continues from its present state.
var errGoOn = errors.New("dynamo: instance has changed")

// condemn ends a running instance and marks it as Deleting.
func (p *Provider) condemn(ctx context.Context, it table.Item, force bool) error {
	in, err := instances.Decode(it)
	if err != nil {
		return err
	}
	if !in.Status.Terminal() && !force {
		return fmt.Errorf("dynamo: instance %q is %s: %w", in.InstanceID, in.Status, provider.ErrNotEnded)
	}

	d, err := p.lookAtEnd(ctx, &in)
	if err != nil {
		return err
	}
	if d.head.Watermark == (provider.Position{}) {
		d.head.Watermark = instances.WatermarkOf(it)
	}

	writes, err := p.condemnation(ctx, &in, d)
	if err != nil {
		return fmt.Errorf("dynamo: instance %q: %w", in.InstanceID, err)
	}
	err = p.table.Transact(ctx, in.InstanceID, writes)
	// a turn was committed, or another process has marked the instance, or the response to this write was lost
	if table.ConditionFailed(err) {
		return errGoOn
	}
	return err
}

// condemnation returns the transaction that ends and marks an instance: the terminal segment unless it has ended, the
// cancel record, and the mark.
func (p *Provider) condemnation(ctx context.Context, in *provider.Instance, d *deathbed) ([]types.TransactWriteItem, error) {
	now := p.now().UTC()
	var items []table.Item
	if !d.over {
		fence := provider.Segment{Sequence: d.head.Segment + 1, Watermark: d.head.Watermark, Events: provider.DeletionEvents(d.cancels(), d.state.LastID, now)}
		end := &fence.Events[len(fence.Events)-1]
		end.RequestedBy, end.Callers = purger(ctx), history.UnansweredCallers(d.state, fence.Events)
		fence.Events[0].TraceParent = d.trace
		var err error
		if items, err = segments.EncodeStart(in.InstanceID, in.ExecutionID, d.previous, fence); err != nil {
			return nil, err
		}
	}

	record, err := p.cancels.MarkItems(ctx, in.ExecutionID, now)
	if err != nil {
		return nil, err
	}

	writes := table.Puts(append(items, record...))
	if !d.over {
		table.RequireAbsent(writes[0].Put)
	}

	mark := p.markDeleting(in, d.head.Watermark, now)
	if by := purger(ctx); by != "" {
		alsoSet(mark, table.AttrPurgedBy, by)
	}
	// the status shows that all outputs were accepted (R9): sent again, they could reach a later incarnation of their
	// receiver
	if in.Status.Terminal() {
		alsoSet(mark, table.AttrErasing, in.ExecutionID)
	}
	if d.outstandingUnread {
		at, err := encodeOutstanding(d.head.Segment+1, nil)
		if err != nil {
			return nil, err
		}
		alsoSet(mark, "untold", at)
	}
	return append(writes, types.TransactWriteItem{Update: mark}), nil
}

// purger returns the requester of a deletion. It is empty if the requester is unknown or the deletion is due to
// retention.
func purger(ctx context.Context) string {
	name, _ := provider.RequesterOf(ctx)
	return history.Requester(name)
}

// alsoSet adds an attribute to an update.
func alsoSet(u *types.Update, attribute, value string) {
	u.UpdateExpression = aws.String("SET " + attribute + " = :" + attribute + ", " + strings.TrimPrefix(*u.UpdateExpression, "SET "))
	u.ExpressionAttributeValues[":"+attribute] = table.Str(value)
}

// markDeleting returns the update that makes an instance Deleting, on condition that the execution is its current one.
// It stores the watermark for the tombstone, because the segment that contains it will be erased.
func (p *Provider) markDeleting(in *provider.Instance, watermark provider.Position, now time.Time) *types.Update {
	return &types.Update{
		Key: table.InstanceKey(in.InstanceID),
		UpdateExpression: aws.String("SET #status = :status, updated = :since, deleting = :since, attention = :attention, wm = :wm, inbox = :inbox" +
			" REMOVE blockedBy, diagnosis, paused, due"),
		ConditionExpression:      aws.String("execution = :x AND attribute_not_exists(deleting)"),
		ExpressionAttributeNames: map[string]string{table.NameStatus: table.AttrStatus},
		ExpressionAttributeValues: table.Item{
			":status": table.Str(string(provider.StatusDeleting)), ":since": table.Str(table.FormatTime(now)), ":attention": table.Str(table.AttentionDeleting),
			":wm": table.Str(watermark.Sequence), ":inbox": table.Str(watermark.Inbox), ":x": table.Str(in.ExecutionID),
		},
	}
}

// finishDeletion continues the deletion of a marked instance. It erases the newest execution first, because messages
// name it, and its start names the previous one. Of each execution it erases the start first, so that readers find no
// history after the first write instead of a part.
func (p *Provider) finishDeletion(ctx context.Context, it table.Item) error {
	in, err := instances.Decode(it)
	if err != nil {
		return err
	}

	at := table.GetString(it, table.AttrErasing)
	if at == "" {
		if err := p.sendEnd(ctx, &in); err != nil {
			return err
		}
		if err := p.cancelOutstanding(ctx, &in, it); err != nil {
			return err
		}
		at = in.ExecutionID
		if err := p.moveOn(ctx, &in, "", at); err != nil {
			return err
		}
	}

	progress := p.progressOf(it)
	for {
		previous, err := p.erase(ctx, in.InstanceID, at, "", progress)
		if err != nil {
			return err
		}
		// the executions before the oldest one are already erased (R21)
		if previous == "" || at == table.GetString(it, table.AttrOldest) {
			if err := p.updates.DeleteAll(ctx, it, progress.goesOn); err != nil {
				return err
			}
			return p.bury(ctx, it, at)
		}
		if err := p.moveOn(ctx, &in, at, previous); err != nil {
			return err
		}
		at = previous
	}
}

// moveOn stores the execution that is erased next, which also records progress, so that another call continues there.
func (p *Provider) moveOn(ctx context.Context, in *provider.Instance, from, to string) error {
	update := &dynamodb.UpdateItemInput{
		Key:                       table.InstanceKey(in.InstanceID),
		UpdateExpression:          aws.String("SET updated = :moved, erasing = :to"),
		ConditionExpression:       aws.String("execution = :x AND attribute_exists(deleting) AND attribute_not_exists(erasing)"),
		ExpressionAttributeValues: table.Item{":moved": table.Str(table.FormatTime(p.now())), ":to": table.Str(to), ":x": table.Str(in.ExecutionID)},
	}
	if from != "" {
		update.ConditionExpression = aws.String("execution = :x AND attribute_exists(deleting) AND erasing = :from")
		update.ExpressionAttributeValues[":from"] = table.Str(from)
	}
	err := p.table.Update(ctx, in.InstanceID, update)
	if _, overtaken := table.FailedItem(err, 0); overtaken {
		return errGoOn
	}
	return err
}

// bury replaces an instance without remaining items by a tombstone.
func (p *Provider) bury(ctx context.Context, it table.Item, last string) error {
	in := &dynamodb.PutItemInput{
		Item:                      p.instances.Tombstone(it),
		ConditionExpression:       aws.String("execution = :x AND attribute_exists(deleting) AND erasing = :last AND attribute_not_exists(refused)"),
		ExpressionAttributeValues: table.Item{":x": it[table.AttrExecution], ":last": table.Str(last)},
	}
	if refused := it[table.AttrRejectedCount]; refused != nil {
		in.ConditionExpression = aws.String("execution = :x AND attribute_exists(deleting) AND erasing = :last AND refused = :refused")
		in.ExpressionAttributeValues[":refused"] = refused
	}
	err := p.table.Put(ctx, table.GetString(it, table.AttrPK)[len(table.IDPrefix):], in)
	// a start was rejected in the meantime, or another process was faster
	if _, changed := table.FailedItem(err, 0); changed {
		return errGoOn
	}
	return err
}
