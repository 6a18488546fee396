// Package deletion deletes instances. It ends and marks an instance in one transaction, sends the outputs of its end,
// erases its executions, and writes a tombstone (R17). It also ends instances with a damaged history.
package deletion

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/cancels"
	"github.com/perdure/perdure/provider/dynamo/internal/erasure"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/outbox"
	"github.com/perdure/perdure/provider/dynamo/internal/payloadstore"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/dynamo/internal/timers"
	"github.com/perdure/perdure/provider/dynamo/internal/updates"
	"github.com/perdure/perdure/provider/outputs"
)

// Stores are the stores that a Deleter reads and writes.
type Stores struct {
	Table     *table.Table
	Instances *instances.Store
	Segments  *segments.Store
	Cancels   *cancels.Store
	Updates   *updates.Store
	Payloads  *payloadstore.Store
	Timers    *timers.Timers
	Outbox    *outbox.Outbox
	Eraser    *erasure.Eraser
}

// Deleter deletes instances. It is safe for concurrent use.
type Deleter struct {
	Stores

	history *historyReader
	now     func() time.Time
	log     *slog.Logger
}

// New returns a deleter.
func New(s Stores, now func() time.Time, log *slog.Logger) *Deleter {
	h := &historyReader{Stores: s, now: now, log: log, large: make(chan struct{}, maxLargeReads)}
	return &Deleter{Stores: s, history: h, now: now, log: log}
}

// maxTries is the maximum number of restarts of a deletion because the instance had a turn, or because another process
// also deletes the instance.
const maxTries = 10

// DeleteInstance ends and marks the instance in one transaction and sends the outputs of its end. It then erases one
// execution after the other and writes a tombstone (R17). The instance item stores the progress, so that any process
// can continue the deletion with another call.
func (dl *Deleter) DeleteInstance(ctx context.Context, instanceID string, force bool) error {
	return dl.deleteInSteps(ctx, instanceID, "", force)
}

// deleteInSteps deletes the incarnation that startID created, or the current incarnation if startID is empty. It does
// not delete a later incarnation. Unlike deleteInOneTransaction, it deletes an instance of any status and size.
func (dl *Deleter) deleteInSteps(ctx context.Context, instanceID, startID string, force bool) error {
	for range maxTries {
		it, err := dl.Instances.Get(ctx, instanceID, provider.Strong)
		switch start := table.GetString(it, table.AttrStartID); {
		case startID != "" && (errors.Is(err, provider.ErrNotFound) || err == nil && start != startID):
			return nil // another process has finished the deletion
		case err != nil:
			return err
		default:
			startID = start
		}

		if instances.IsDeleting(it) {
			err = dl.eraseInstance(ctx, it)
		} else if err = dl.endAndMark(ctx, it, force); err == nil {
			continue
		}
		if !errors.Is(err, errChanged) {
			return err
		}
	}
	return &provider.Error{Op: "DeleteInstance", InstanceID: instanceID, Retryable: true, Err: provider.ErrConflict}
}

// endAndMark ends a running instance and marks it as Deleting.
func (dl *Deleter) endAndMark(ctx context.Context, it table.Item, force bool) error {
	in, err := instances.Decode(it)
	if err != nil {
		return err
	}
	if !in.Status.Terminal() && !force {
		return fmt.Errorf("dynamo: instance %q is %s: %w", in.InstanceID, in.Status, provider.ErrNotEnded)
	}

	d, err := dl.history.readEnd(ctx, &in)
	if err != nil {
		return err
	}
	if d.Head.Watermark == (provider.Position{}) {
		d.Head.Watermark = instances.WatermarkOf(it)
	}

	writes, err := dl.endWrites(ctx, &in, d)
	if err != nil {
		return fmt.Errorf("dynamo: instance %q: %w", in.InstanceID, err)
	}
	err = dl.Table.Transact(ctx, in.InstanceID, writes)
	// a turn was committed, or another process has marked the instance, or the response to this write was lost
	if table.ConditionFailed(err) {
		return errChanged
	}
	return err
}

// endWrites returns the transaction that ends and marks an instance: the terminal segment of a running instance, the
// cancel record, and the mark.
func (dl *Deleter) endWrites(
	ctx context.Context, in *provider.Instance, d *finalExecution,
) ([]types.TransactWriteItem, error) {
	now := dl.now().UTC()
	var items []table.Item
	if !d.Ended {
		deletion := outputs.Deletion{
			Cancels: d.cancelEvents(), RequestedBy: requesterOf(ctx), TraceParent: d.TraceParent, At: now,
		}
		fence := provider.Segment{
			Sequence:  d.Head.Segment + 1,
			Watermark: d.Head.Watermark,
			Events:    deletion.Events(d.State),
		}
		var err error
		if items, err = segments.EncodeStart(in.InstanceID, in.ExecutionID, d.Previous, fence); err != nil {
			return nil, err
		}
	}

	record, err := dl.Cancels.MarkItems(ctx, in.ExecutionID, now)
	if err != nil {
		return nil, err
	}

	writes := table.Puts(append(items, record...))
	if !d.Ended {
		table.RequireAbsent(writes[0].Put)
	}

	mark := dl.markDeleting(in, d.Head.Watermark, now)
	if by := requesterOf(ctx); by != "" {
		addAttribute(mark, table.AttrPurgedBy, by)
	}
	// the status shows that all outputs were accepted (R9); resent outputs could reach a later incarnation of their
	// receiver
	if in.Status.Terminal() {
		addAttribute(mark, table.AttrErasing, in.ExecutionID)
	}
	if d.Incomplete {
		at, err := encodeSearch(d.Head.Segment+1, nil)
		if err != nil {
			return nil, err
		}
		addAttribute(mark, "untold", at)
	}
	return append(writes, types.TransactWriteItem{Update: mark}), nil
}

// requesterOf returns the requester of a deletion. It is empty if the requester is unknown or the deletion is due to
// retention.
func requesterOf(ctx context.Context) string {
	name, _ := provider.RequesterOf(ctx)
	return history.Requester(name)
}

func addAttribute(u *types.Update, attribute, value string) {
	u.UpdateExpression = aws.String(
		"SET " + attribute + " = :" + attribute + ", " + strings.TrimPrefix(*u.UpdateExpression, "SET "),
	)
	u.ExpressionAttributeValues[":"+attribute] = table.Str(value)
}

// markDeleting returns the update that makes an instance Deleting, on condition that the execution is its current one
// and no deletion has begun. It stores the watermark for the tombstone, because the segment that contains it will be
// erased.
func (dl *Deleter) markDeleting(in *provider.Instance, watermark provider.Position, now time.Time) *types.Update {
	return &types.Update{
		Key: table.InstanceKey(in.InstanceID),
		UpdateExpression: aws.String(
			"SET #status = :status, updated = :since, deleting = :since, attention = :attention, wm = :wm, inbox = " +
				":inbox" +
				" REMOVE blockedBy, diagnosis, paused, due",
		),
		ConditionExpression:      aws.String("execution = :x AND attribute_not_exists(deleting)"),
		ExpressionAttributeNames: table.Names(table.AttrStatus),
		ExpressionAttributeValues: table.Item{
			":status":    table.Str(string(provider.StatusDeleting)),
			":since":     table.Str(table.FormatTime(now)),
			":attention": table.Str(instances.DeletingPartition(in.InstanceID)),
			":wm":        table.Str(watermark.Sequence),
			":inbox":     table.Str(watermark.Inbox),
			":x":         table.Str(in.ExecutionID),
		},
	}
}

// eraseInstance continues the deletion of a marked instance. It erases the newest execution first, because messages
// name it, and its start names the previous one. It erases the start of each execution first, so that readers find no
// history after the first write, instead of a part of it.
func (dl *Deleter) eraseInstance(ctx context.Context, it table.Item) error {
	in, err := instances.Decode(it)
	if err != nil {
		return err
	}

	at := table.GetString(it, table.AttrErasing)
	if at == "" {
		if err := dl.sendEndOutputs(ctx, &in); err != nil {
			return err
		}
		if err := dl.cancelOutstandingChildren(ctx, &in, it); err != nil {
			return err
		}
		at = in.ExecutionID
		if err := dl.storePosition(ctx, &in, "", at); err != nil {
			return err
		}
	}

	progress := dl.Eraser.NewProgress(it)
	for {
		previous, err := dl.Eraser.Erase(ctx, in.InstanceID, at, "", progress)
		if err != nil {
			return err
		}
		// the executions before the oldest one are already erased (R21)
		if previous == "" || at == table.GetString(it, table.AttrOldest) {
			if err := dl.Updates.DeleteAll(ctx, it, progress.Record); err != nil {
				return err
			}
			return dl.writeTombstone(ctx, it, at)
		}
		if err := dl.storePosition(ctx, &in, at, previous); err != nil {
			return err
		}
		at = previous
	}
}

// storePosition stores the execution that is erased next, so that another call continues with that execution. The write
// also records progress.
func (dl *Deleter) storePosition(ctx context.Context, in *provider.Instance, from, to string) error {
	update := &dynamodb.UpdateItemInput{
		Key:              table.InstanceKey(in.InstanceID),
		UpdateExpression: aws.String("SET updated = :moved, erasing = :to"),
		ConditionExpression: aws.String(
			"execution = :x AND attribute_exists(deleting) AND attribute_not_exists(erasing)",
		),
		ExpressionAttributeValues: table.Item{
			":moved": table.Str(table.FormatTime(dl.now())),
			":to":    table.Str(to),
			":x":     table.Str(in.ExecutionID),
		},
	}
	if from != "" {
		update.ConditionExpression = aws.String("execution = :x AND attribute_exists(deleting) AND erasing = :from")
		update.ExpressionAttributeValues[":from"] = table.Str(from)
	}
	err := dl.Table.Update(ctx, in.InstanceID, update)
	if _, conflict := table.FailedItem(err, 0); conflict {
		return errChanged
	}
	return err
}

// writeTombstone replaces an instance without remaining items by a tombstone.
func (dl *Deleter) writeTombstone(ctx context.Context, it table.Item, last string) error {
	condition := "execution = :x AND attribute_exists(deleting) AND erasing = :last AND "
	in := &dynamodb.PutItemInput{
		Item:                      dl.Instances.Tombstone(it),
		ExpressionAttributeValues: table.Item{":x": it[table.AttrExecution], ":last": table.Str(last)},
	}
	if refused := it[table.AttrRejectedCount]; refused != nil {
		in.ConditionExpression = aws.String(condition + "refused = :refused")
		in.ExpressionAttributeValues[":refused"] = refused
	} else {
		in.ConditionExpression = aws.String(condition + "attribute_not_exists(refused)")
	}
	err := dl.Table.Put(ctx, table.InstanceIDOf(it), in)
	// a start was rejected in the meantime, or another process was faster
	if _, changed := table.FailedItem(err, 0); changed {
		return errChanged
	}
	return err
}
