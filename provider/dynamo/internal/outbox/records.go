package outbox

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/idset"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// A dispatch that is repeated or fails halfway stores the outputs that SQS has accepted, and the next repetition skips
// them. Otherwise, while half of all calls fail, each output would be sent with every delivery of its message. In the
// usual case, a dispatch succeeds immediately and does not read or write dispatch records.

// The attributes of a dispatch record: the packed IDs of the events whose timers, or whose other outputs, were
// accepted.
const (
	attrTakenTimers = "timers"
	attrAccepted    = "taken"
	// recordSuffix distinguishes a dispatch record from the cursor of a large segment.
	recordSuffix = "#taken"
	// recordBytes is the maximum size of each of these attributes. If they are larger, nothing is stored, and some
	// outputs are sent again.
	recordBytes = 150 << 10
)

// acceptedOutputs holds the outputs of an execution that are known to be accepted. An event causes at most two: a timer
// and another output.
type acceptedOutputs struct {
	instanceID, executionID string
	// from is the first segment that is sent, and head is the last existing segment. Every later repetition includes
	// head.
	from, head     int64
	known          bool   // earlier dispatch records were read, or there are none
	run            string // the reconciliation that wrote or writes the dispatch record
	timers, others idset.Set
	unwritten      bool
	// stored holds the known ID attributes of the dispatch record of head.
	stored table.Item
}

// has reports whether an entry for a queue was accepted.
func (t *acceptedOutputs) has(timers bool, e *sqsqueue.Entry) bool {
	if timers {
		return e.IsEvent && t.timers.Has(e.ID)
	}
	return e.IsEvent && t.others.Has(e.ID)
}

// add records the accepted entries of a batch.
func (t *acceptedOutputs) add(timers bool, sent []sqsqueue.Entry) {
	set := &t.others
	if timers {
		set = &t.timers
	}
	for i := range sent {
		if e := &sent[i]; e.IsEvent {
			*set = set.Add(history.Range{First: e.ID, Last: e.ID})
			t.unwritten = true
		}
	}
}

// sendNew sends the entries that were not accepted yet. It records the accepted entries if remember is set, or if some
// failed. It separately returns entries that SQS always rejects.
func (b *Sender) sendNew(
	ctx context.Context, queues sqsqueue.Outgoing, remember bool,
) (never []sqsqueue.RejectedEntry, err error) {
	t := &b.accepted
	if err := b.skipAccepted(ctx, queues); err != nil {
		return nil, err
	}
	if b.run != "" {
		b.outbox.setReconcileIDs(queues, b.run)
	}
	sent, err := b.outbox.Queue.SendAll(ctx, queues)
	if t.executionID != "" && (remember || err != nil) {
		for i := range sent.Accepted {
			t.add(sent.Accepted[i].URL == b.outbox.Queue.TimersURL, sent.Accepted[i].Entries)
		}
	}
	return sent.Rejected, err
}

// skipAccepted removes the accepted entries, if they may have been sent before.
func (b *Sender) skipAccepted(ctx context.Context, queues sqsqueue.Outgoing) error {
	t := &b.accepted
	if !b.repeated || t.executionID == "" || len(queues) == 0 {
		return nil
	}
	if !t.known {
		if err := b.outbox.readRecords(ctx, t); err != nil {
			return err
		}
		t.known = true
	}
	for i := range queues {
		q := &queues[i]
		q.Entries = slices.DeleteFunc(
			q.Entries, func(e sqsqueue.Entry) bool { return t.has(q.URL == b.outbox.Queue.TimersURL, &e) },
		)
	}
	return nil
}

// readRecords reads the dispatch records of t.from and later segments, with strong consistency.
func (ob *Outbox) readRecords(ctx context.Context, t *acceptedOutputs) error {
	last := table.CursorSK(t.head) + recordSuffix
	records, err := ob.Table.QueryAll(ctx, t.instanceID, table.RangeQuery(
		table.ExecutionPK(t.executionID), table.CursorSK(t.from), last, provider.Strong,
	))
	for _, record := range records {
		t.others = ob.addIDs(ctx, t.others, record, attrAccepted)
		t.timers = ob.addIDs(ctx, t.timers, record, attrTakenTimers)
		if table.GetString(record, table.AttrSK) == last {
			t.run = max(t.run, table.GetString(record, table.AttrTakenBy))
			t.stored = idAttributes(record)
		}
	}
	return err
}

// addIDs adds the IDs in an attribute of a dispatch record.
func (ob *Outbox) addIDs(ctx context.Context, set idset.Set, record table.Item, name string) idset.Set {
	var runs []history.Range
	invalid := func(r history.Range) bool { return r.First < 1 || r.Last < r.First }
	if doc := table.GetString(record, name); doc != "" &&
		(json.Unmarshal([]byte(doc), &runs) != nil || slices.ContainsFunc(runs, invalid)) {
		ob.log.WarnContext(ctx, "dispatch record unreadable, some outputs are sent again",
			"event", logevent.DispatchRecordUnreadable, "execution", table.GetString(record, table.AttrPK),
			"item", table.GetString(record, table.AttrSK))
		return set
	}
	for _, r := range runs {
		set = set.Add(r)
	}
	return set
}

// noRun sorts before the names of reconciliations, which are times.
const noRun = "0"

// notLaterRun is the condition that no reconciliation after :run wrote an item.
const notLaterRun = "(attribute_not_exists(" + table.AttrTakenBy + ") OR " + table.AttrTakenBy + " <= " + ValueRun + ")"

// ValueRun is the value with the run of a reconciliation.
const ValueRun = ":run"

// maxWriteTries is the number of tries of a write with concurrent writers.
const maxWriteTries = 4

// WriteRecord stores the accepted outputs, even if the context of the sends has ended. A dispatch adds to the record
// that it has read, with the name of the record's reconciliation, and preserves the additions of other writers. A
// record that another reconciliation has written in the meantime is not replaced, and some outputs may be resent. For a
// reconciliation, this applies only to later reconciliations. Otherwise, the writer of the replaced record would ignore
// the new record as older and resend all outputs.
func (b *Sender) WriteRecord(ctx context.Context) {
	t := &b.accepted
	if !t.unwritten {
		return
	}
	t.unwritten = false
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
	defer stop()

	for range maxWriteTries {
		in := b.recordWrite(t)
		if in == nil {
			return
		}
		err := b.outbox.Table.Put(ctx, t.instanceID, in)
		old, others := table.FailedItem(err, 0)
		switch {
		case err == nil:
			t.stored = idAttributes(in.Item)
			return
		case !others:
			b.outbox.log.WarnContext(ctx, "dispatch record write failed, some outputs may be sent again",
				"event", logevent.DispatchRecordWriteFailed, "instance", t.instanceID, "error", err)
			return
		case t.run == "" || table.GetString(old, table.AttrTakenBy) != t.run:
			return
		}
		t.others = b.outbox.addIDs(ctx, t.others, old, attrAccepted)
		t.timers = b.outbox.addIDs(ctx, t.timers, old, attrTakenTimers)
		t.stored = idAttributes(old)
	}
}

// recordWrite returns the write of a dispatch record, or nil if it is too large.
func (b *Sender) recordWrite(t *acceptedOutputs) *dynamodb.PutItemInput {
	it := table.ExecutionKey(t.executionID, table.CursorSK(t.head)+recordSuffix)
	it[table.AttrTTL] = table.Unix(b.outbox.now().Add(cursorLifetime))
	in := &dynamodb.PutItemInput{
		Item: it, ConditionExpression: aws.String(notLaterRun),
		ExpressionAttributeValues:           table.Item{ValueRun: table.Str(cmp.Or(t.run, noRun))},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if t.run != "" {
		it[table.AttrTakenBy] = table.Str(t.run)
		in.ConditionExpression = aws.String(
			"attribute_not_exists(" + table.AttrTakenBy + ") OR " + table.AttrTakenBy + " < " + ValueRun + " OR " +
				table.AttrTakenBy + " = " + ValueRun + unchangedCondition(t.stored, in.ExpressionAttributeValues),
		)
	}
	for name, set := range map[string]idset.Set{attrAccepted: t.others, attrTakenTimers: t.timers} {
		doc, _ := json.Marshal(set) //nolint:errchkjson // numbers cannot fail
		if len(doc) > recordBytes {
			return nil
		}
		if len(set) > 0 {
			it[name] = table.Str(string(doc))
		}
	}
	return in
}

// unchangedCondition returns the condition that a dispatch record has the IDs that were read.
func unchangedCondition(seen, values table.Item) string {
	var condition strings.Builder
	for _, name := range []string{attrAccepted, attrTakenTimers} {
		if seen[name] == nil {
			condition.WriteString(" AND attribute_not_exists(" + name + ")")
			continue
		}
		values[":"+name] = seen[name]
		condition.WriteString(" AND " + name + " = :" + name)
	}
	return condition.String()
}

// idAttributes returns the ID attributes of a dispatch record.
func idAttributes(record table.Item) table.Item {
	ids := table.Item{}
	for _, name := range []string{attrAccepted, attrTakenTimers} {
		if record[name] != nil {
			ids[name] = record[name]
		}
	}
	return ids
}
