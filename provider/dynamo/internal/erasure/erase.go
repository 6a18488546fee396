// Package erasure erases executions. It replaces segments by stubs, and deletes other items and stored payloads. Cancel
// decisions remain until no message can refer to the execution.
package erasure

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/cancels"
	"github.com/perdure/perdure/provider/dynamo/internal/payloadstore"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Eraser erases executions. It is safe for concurrent use.
type Eraser struct {
	table    *table.Table
	cancels  *cancels.Store
	payloads *payloadstore.Store // nil if the hub has no bucket
	now      func() time.Time
}

// New returns an eraser.
func New(t *table.Table, c *cancels.Store, p *payloadstore.Store, now func() time.Time) *Eraser {
	return &Eraser{table: t, cancels: c, payloads: p, now: now}
}

// Erase replaces an execution's segments by stubs and returns the previous execution. The key of a segment is always in
// use, so a process that still has a turn for the segment gets a conflict (I8). The cancel record remains for workers
// that run activities of the execution or will receive them. Erasing is idempotent and skips completed steps. If the
// instance is not deleted, the stub of the start names the next execution.
func (er *Eraser) Erase(
	ctx context.Context, instanceID, executionID, next string, progress *Progress,
) (previous string, err error) {
	// mark before the items are listed, because a late worker reads the mark after its write
	if err := er.cancels.MarkDeleted(ctx, instanceID, executionID); err != nil {
		return "", err
	}
	start, err := er.table.GetExecutionItem(ctx, executionID, table.SegmentSK(0, 0))
	if err != nil {
		return "", err
	}
	previous = table.GetString(start, table.AttrPrevious)
	if !table.IsStub(start) {
		stub := segments.Stub(executionID, 0, er.now())
		switch {
		case next != "":
			stub[table.AttrNext] = table.Str(next)
		case previous != "":
			stub[table.AttrPrevious] = table.Str(previous)
		}
		if err := er.table.PutItem(ctx, instanceID, stub); err != nil {
			return "", err
		}
	}
	if err := er.eraseItems(ctx, instanceID, executionID, progress); err != nil {
		return previous, err
	}
	return previous, er.payloads.DeleteAll(ctx, executionID, progress.Record)
}

// eraseItems erases all items after the start page by page, and reads only keys.
func (er *Eraser) eraseItems(ctx context.Context, instanceID, executionID string, progress *Progress) error {
	due := int64(1) // the next segment that needs a stub
	for page, err := range er.table.Query(ctx, instanceID, segments.KeysOnly(segments.AllItemsQuery(executionID))) {
		if err != nil {
			return err
		}
		var writes []func() error
		for _, it := range page {
			writes = append(writes, er.erasureWrites(ctx, instanceID, executionID, it, &due)...)
		}
		err := awscall.Parallel(writes...)
		if err == nil {
			err = progress.Record(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// erasureWrites returns the writes that erase an item. For a segment, these are stubs for it and for missing segments
// before it in a damaged history. For other items, such as activity records, crash markers and further parts, the write
// is a deletion. The cancel record gets a TTL instead.
func (er *Eraser) erasureWrites(
	ctx context.Context, instanceID, executionID string, it table.Item, due *int64,
) (writes []func() error) {
	sk := table.GetString(it, table.AttrSK)
	switch {
	case table.IsCancelMark(sk), table.IsCancelDecision(sk) && it[table.AttrTTL] != nil:
		return nil
	case table.IsCancelDecision(sk):
		return []func() error{func() error { return er.cancels.Expire(ctx, instanceID, executionID, sk) }}
	}
	sequence, part, err := table.ParseSegmentSK(sk)
	if !strings.HasPrefix(sk, table.SKSegments) || err != nil || part > 0 {
		return []func() error{
			func() error { return er.table.DeleteItem(ctx, instanceID, table.ExecutionKey(executionID, sk)) },
		}
	}
	for ; *due <= sequence; *due++ {
		if *due < sequence || !table.IsStub(it) {
			stub := segments.Stub(executionID, *due, er.now())
			writes = append(writes, func() error { return er.table.PutItem(ctx, instanceID, stub) })
		}
	}
	return writes
}

// Summary is a summary of the items with an execution's key.
type Summary struct {
	Last     int64    // the number of the last segment
	Others   []string // sort keys of items to delete: parts after the first one, activity records
	Decided  []string // sort keys of turns' cancel decisions
	Previous string
	// watermark is the position of the last consumed message.
	Watermark provider.Position
}

// Summarize returns the summary of all items with an execution's key.
func Summarize(items []table.Item) Summary {
	var r Summary
	for _, it := range items {
		sk := table.GetString(it, table.AttrSK)
		if table.IsCancelDecision(sk) {
			r.Decided = append(r.Decided, sk)
		}
		if table.IsCancelMark(sk) || table.IsCancelDecision(sk) {
			continue
		}
		sequence, part, err := table.ParseSegmentSK(sk)
		if !strings.HasPrefix(sk, table.SKSegments) || err != nil {
			r.Others = append(r.Others, sk)
			continue
		}
		r.Last = max(r.Last, sequence)
		if part > 0 {
			r.Others = append(r.Others, sk)
			continue
		}
		if sequence == 0 {
			r.Previous = table.GetString(it, table.AttrPrevious)
		}
		if wm := table.GetString(it, table.AttrWM); wm != "" {
			r.Watermark = provider.Position{Inbox: table.GetString(it, table.AttrInbox), Sequence: wm}
		}
	}
	return r
}

// progressInterval is the interval at which a long deletion records its progress. The sweeper continues a deletion
// without progress for two minutes.
const progressInterval = 30 * time.Second

// Progress records the progress of an instance's deletion. It is nil if the instance is not deleted.
type Progress struct {
	eraser     *Eraser
	instance   table.Item // of the instance
	recordedAt time.Time
}

// NewProgress returns the progress of the deletion of an instance.
func (er *Eraser) NewProgress(it table.Item) *Progress {
	return &Progress{eraser: er, instance: it, recordedAt: er.now()}
}

// Record records progress if the last record is old enough.
func (d *Progress) Record(ctx context.Context) error {
	if d == nil || d.eraser.now().Sub(d.recordedAt) < progressInterval {
		return nil
	}
	d.recordedAt = d.eraser.now()
	_, _, err := d.eraser.table.UpdateIf(ctx, table.InstanceIDOf(d.instance), &dynamodb.UpdateItemInput{
		Key:                 table.KeyOf(d.instance),
		UpdateExpression:    aws.String("SET updated = :wentOn"),
		ConditionExpression: aws.String("execution = :x AND attribute_exists(deleting)"),
		ExpressionAttributeValues: table.Item{
			":wentOn": table.Str(table.FormatTime(d.recordedAt)), ":x": d.instance[table.AttrExecution],
		},
	})
	return err
}
