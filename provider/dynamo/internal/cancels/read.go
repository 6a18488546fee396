// Package cancels stores the cancel record of an execution, which consists of the decisions that cancel its activities.
// Each turn writes its decisions as separate items (b#), and blocks (f#) repeat the decisions of many turns. A mark (c)
// cancels all activities when the instance is deleted.
package cancels

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Store reads and writes cancel decisions. It is safe for concurrent use.
type Store struct {
	table *table.Table
	now   func() time.Time
}

// New returns the cancel decisions in a table.
func New(t *table.Table, now func() time.Time) *Store { return &Store{table: t, now: now} }

const (
	// maxRecentTurns is the number of turns whose decisions are read one by one, the latest first, before blocks are
	// read. It exceeds the size of a block, so that these turns always include the turns after the last block.
	maxRecentTurns = provider.CancelBlockTurns + 16
	// unlinkedAge is the age after which an item that does not name its predecessor is assumed to follow a visible
	// one.
	unlinkedAge = 2 * time.Minute
)

// unlinked is the value of decided.after for an item that does not name its predecessor.
const unlinked = -1

// turnCancels holds the decisions of one turn, or of the turns of a block.
type turnCancels struct {
	after, sequence int64 // they cover the segments after after, up to sequence
	cancels         provider.Cancels
}

// ReadCancels reads the cancel decisions since a segment in one query. The query takes one read unit unless more than
// about 25 turns have cancelled activities since then. If there are more, ReadCancels reads the latest decisions with
// this query and the earlier decisions as blocks.
//
// A strongly consistent query returns all committed items, but it is not atomic with transactions: a turn's decision
// can become visible after the decision of a later turn. Each item names the previous decision, so that ReadCancels
// detects a missing one. It reads the missing decision again immediately. If that fails, the next call starts with that
// decision.
func (cs *Store) ReadCancels(
	ctx context.Context, executionID string, from int64,
) (cancels provider.Cancels, next int64, err error) {
	for try := 1; ; try++ {
		var lacks bool
		cancels, next, lacks, err = cs.readCancels(ctx, executionID, max(from, 0), provider.Strong)
		_, torn := errors.AsType[*table.TornError](err)
		switch {
		case (torn || lacks) && try < table.MaxReadTries:
		case torn:
			return nil, from, &provider.Error{
				Op:        "DynamoDB.Query",
				Retryable: true,
				Err:       fmt.Errorf("cancel record of execution %s: %w", executionID, err),
			}
		default:
			return cancels, next, err
		}
	}
}

// PollCancels is like ReadCancels with an eventually consistent read, which takes half a read unit. If it detects a
// missing decision, it reads again with strong consistency.
func (cs *Store) PollCancels(
	ctx context.Context, executionID string, from int64,
) (cancels provider.Cancels, next int64, err error) {
	cancels, next, lacks, err := cs.readCancels(ctx, executionID, max(from, 0), provider.Eventual)
	if _, torn := errors.AsType[*table.TornError](err); torn || lacks {
		return cs.ReadCancels(ctx, executionID, from)
	}
	return cancels, next, err
}

// readCancels makes one try. lacks is true if a decision exists that is not visible yet.
func (cs *Store) readCancels(
	ctx context.Context, executionID string, from int64, c provider.Consistency,
) (_ provider.Cancels, next int64, lacks bool, err error) {
	all, mark, whole, err := cs.recentTurns(ctx, executionID, from, c)
	if err == nil && !whole {
		all, err = cs.earlierTurns(ctx, executionID, from, all)
	}
	if err != nil {
		return nil, from, false, err
	}
	next, lacks = cs.nextUnread(all, from)
	if len(all) == 0 {
		return mark, next, lacks, nil
	}

	open := slices.IndexFunc(mark, func(c provider.ActivityCancel) bool { return c.All })
	if open < 0 {
		open = len(mark)
	}
	cancels := slices.Clone(mark[:open]) // written as a whole by the previous release
	for i := range all {
		cancels = append(cancels, all[i].cancels...)
	}
	// A missing decision may be in c, if a turn of the previous release wrote it. It is then in no other item.
	return append(cancels, mark[open:]...), next, lacks && len(mark) == 0, nil
}

// nextUnread returns the segment at which the next read starts. It is the segment after the last decision that has no
// missing predecessor.
func (cs *Store) nextUnread(all []turnCancels, from int64) (next int64, lacks bool) {
	next = from
	for i := range all {
		switch d := &all[i]; {
		case d.after > 0 && d.after >= next:
			return next, true
		case d.after == unlinked && len(d.cancels) > 0 && d.cancels[0].At.After(cs.now().Add(-unlinkedAge)):
			return next, false
		default:
			next = d.sequence + 1
		}
	}
	return next, false
}

// recentTurns reads the decisions of the last turns with decisions, and c. all is true if there are no other decisions
// since the given segment.
func (cs *Store) recentTurns(
	ctx context.Context, executionID string, from int64, c provider.Consistency,
) (latest []turnCancels, mark provider.Cancels, all bool, err error) {
	in := table.RangeQuery(table.ExecutionPK(executionID), table.CancelDecisionsSK(from), table.SKCancelMark, c)
	in.ScanIndexForward = aws.Bool(false)
	in.Limit = aws.Int32(maxRecentTurns)
	items, err := cs.table.QueryPage(ctx, "", in)
	if err != nil || len(items) == 0 {
		return nil, nil, true, err
	}
	if table.GetString(items[0], table.AttrSK) == table.SKCancelMark {
		if mark, err = cs.decodeMark(ctx, executionID, items[0]); err != nil {
			return nil, nil, false, err
		}
		items = items[1:]
	}

	slices.Reverse(items)
	all = in.ExclusiveStartKey == nil
	// the first decision can be incomplete at the end of the page, so it is read with the earlier ones
	if !all && len(items) > 0 {
		cut := table.SequenceOf(items[0], table.SKCancelDecisions)
		items = slices.DeleteFunc(
			items, func(it table.Item) bool { return table.SequenceOf(it, table.SKCancelDecisions) == cut },
		)
	}
	latest, err = decodeTurns(executionID, table.SKCancelDecisions, items)
	return latest, mark, all, err
}

// earlierTurns prepends the decisions of earlier turns since a segment: blocks, and decisions that are in no block.
func (cs *Store) earlierTurns(
	ctx context.Context, executionID string, from int64, latest []turnCancels,
) (whole []turnCancels, err error) {
	blocks, err := cs.turnsBetween(ctx, executionID, table.SKCancelBlocks, from, table.MaxSequence)
	if err != nil {
		return nil, err
	}

	next := max(from, 1) // the first segment to read; segment 0 has no decisions
	fill := func(until int64) error {
		if next > until {
			return nil
		}
		some, err := cs.turnsBetween(ctx, executionID, table.SKCancelDecisions, next, until)
		whole = append(whole, some...)
		return err
	}
	for _, b := range blocks {
		if err := fill(b.after); err != nil {
			return nil, err
		}
		whole = append(whole, b)
		next = b.sequence + 1
	}

	until := int64(table.MaxSequence)
	if len(latest) > 0 {
		until = latest[0].sequence - 1
	}
	if err := fill(until); err != nil {
		return nil, err
	}
	return append(whole, slices.DeleteFunc(latest, func(d turnCancels) bool { return d.sequence < next })...), nil
}

// turnsBetween reads all decisions with a key prefix between two segments.
func (cs *Store) turnsBetween(
	ctx context.Context, executionID, prefix string, first, last int64,
) ([]turnCancels, error) {
	items, err := cs.table.QueryAll(ctx, "", table.RangeQuery(
		table.ExecutionPK(executionID), table.NumberedSK(prefix, first), table.NumberedSK(prefix, last)+"#~",
		provider.Strong,
	))
	if err != nil {
		return nil, err
	}
	return decodeTurns(executionID, prefix, items)
}

// decodeTurns decodes items that are sorted by key.
func decodeTurns(executionID, prefix string, items []table.Item) ([]turnCancels, error) {
	all := make([]turnCancels, 0, len(items))
	for len(items) > 0 {
		n := max(int(table.GetNumber(items[0], table.AttrParts)), 1)
		d := turnCancels{after: unlinked, sequence: table.SequenceOf(items[0], prefix)}
		if items[0][attrAfter] != nil {
			d.after = table.GetNumber(items[0], attrAfter)
		}

		sk := table.GetString(items[0], table.AttrSK)
		parts := items[:min(n, len(items))]
		doc, err := joinDocument(parts, sk, n)
		if err != nil {
			return nil, err
		}
		if len(doc) > 0 { // otherwise only the item's TTL remains
			if d.cancels, err = decode(executionID, sk, doc); err != nil {
				return nil, err
			}
		}

		all = append(all, d)
		items = items[len(parts):]
	}
	return all, nil
}

// joinDocument joins the items of one key.
func joinDocument(parts []table.Item, sk string, n int) ([]byte, error) {
	if doc := table.GetString(parts[0], AttrCancels); doc != "" {
		return []byte(doc), nil
	}

	var packed bytes.Buffer
	for i, part := range parts {
		if i > 0 && table.GetString(part, table.AttrSK) != fmt.Sprintf("%s#%03d", sk, i) {
			return nil, table.NewTornError(
				"item %s instead of part %d of %s", table.GetString(part, table.AttrSK), i, sk,
			)
		}
		packed.Write(table.GetBytes(part, table.AttrZstd))
	}
	if len(parts) < n {
		return nil, table.NewTornError("%d of %d parts of %s exist", len(parts), n, sk)
	}
	if packed.Len() == 0 {
		return nil, nil
	}
	doc, err := table.Decompress(packed.Bytes())
	if err != nil {
		return nil, fmt.Errorf("dynamo: %w: item %s: %w", provider.ErrCorrupt, sk, err)
	}
	return doc, nil
}

// ReadMark reads c, which marks a deleted instance. In earlier releases it contains the whole record.
func (cs *Store) ReadMark(ctx context.Context, executionID string) (provider.Cancels, error) {
	c, err := cs.table.GetExecutionItem(ctx, executionID, table.SKCancelMark)
	if err != nil || len(c) == 0 {
		return nil, err
	}
	return cs.decodeMark(ctx, executionID, c)
}

func (cs *Store) decodeMark(ctx context.Context, executionID string, c table.Item) (_ provider.Cancels, err error) {
	doc := []byte(table.GetString(c, AttrCancels))
	if parts := int(table.GetNumber(c, table.AttrParts)); parts > 0 {
		if doc, err = cs.readMarkParts(ctx, executionID, parts); err != nil {
			return nil, err
		}
	}
	return decode(executionID, table.SKCancelMark, doc)
}

// readMarkParts joins the parts of a large record. A turn of the previous release may rewrite them at the same time. A
// torn record cannot be decompressed.
func (cs *Store) readMarkParts(ctx context.Context, executionID string, parts int) ([]byte, error) {
	var packed bytes.Buffer
	for n := range parts {
		part, err := cs.table.GetExecutionItem(ctx, executionID, table.CancelMarkPartSK(n))
		if err != nil {
			return nil, err
		}
		if len(part) == 0 {
			break // the record is torn, or its number of parts is damaged
		}
		packed.Write(table.GetBytes(part, table.AttrZstd))
	}
	doc, err := table.Decompress(packed.Bytes())
	if err != nil {
		return nil, &provider.Error{
			Op:        "DynamoDB.GetItem",
			Retryable: true,
			Err:       fmt.Errorf("item %s %s: %w", table.ExecutionPK(executionID), table.SKCancelMark, err),
		}
	}
	return doc, nil
}
