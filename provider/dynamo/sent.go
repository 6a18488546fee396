package dynamo

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
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// A repeated dispatch, and one that fails half way, notes what SQS has taken, and the next repetition leaves that out:
// otherwise, in an hour in which half of all calls fail, each output would be sent with every delivery of its trigger.
// A dispatch that succeeds at once, as nearly all do, neither reads nor writes any note.

// Attributes of a note: the packed ids of the events whose timers, or whose other outputs, are taken.
const (
	attrTakenTimers = "timers"
	attrTaken       = "taken"
	// attrTakenBy is the run of the reconciliation that has written a note or a cursor; a dispatch has none.
	attrTakenBy = "takenBy"
	// noteSuffix distinguishes a note from the cursor of a large segment, which may stand beside it.
	noteSuffix = "#taken"
	// noteBytes bounds the size of each of these attributes. With more nothing is noted, and some outputs are sent
	// again.
	noteBytes = 150 << 10
)

// takenOutputs is the part of an execution's outputs that is known to be taken. An event causes at most two: a timer,
// and another output.
type takenOutputs struct {
	instanceID, executionID string
	// from is the first segment that is sent, and head the last segment there is: every later repetition, whatever
	// message leads to it, includes head.
	from, head     int64
	known          bool   // earlier notes were read, or there are none
	run            string // of the reconciliation that has written the note that is there, or that writes it
	timers, others provider.IDSet
	unnoted        bool
	// seen is what the note of head holds, as far as it is known: its attributes of ids.
	seen item
}

// has reports whether an entry for a queue is taken.
func (t *takenOutputs) has(timers bool, e *entry) bool {
	if timers {
		return e.known && t.timers.Has(e.id)
	}
	return e.known && t.others.Has(e.id)
}

// add records the entries of a batch that were taken.
func (t *takenOutputs) add(timers bool, sent []entry) {
	set := &t.others
	if timers {
		set = &t.timers
	}
	for i := range sent {
		if e := &sent[i]; e.known {
			*set = set.Add(history.Range{First: e.id, Last: e.id})
			t.unnoted = true
		}
	}
}

// offer sends what is not taken yet. It records what is taken now if remember is set, or if sending failed in part. It
// returns separately what SQS will never take.
func (b *outbox) offer(ctx context.Context, queues outgoing, remember bool) (never []refusedEntry, err error) {
	t := &b.taken
	if err := b.leaveOut(ctx, queues); err != nil {
		return nil, err
	}
	if b.run != "" {
		b.p.reconciled(queues, b.run)
	}
	sent, err := b.p.sendAll(ctx, queues)
	if t.executionID != "" && (remember || err != nil) {
		for i := range sent.taken {
			t.add(sent.taken[i].url == b.p.hub.TimersURL, sent.taken[i].entries)
		}
	}
	return sent.refused, err
}

// leaveOut removes the entries that are taken, where they may have been sent before.
func (b *outbox) leaveOut(ctx context.Context, queues outgoing) error {
	t := &b.taken
	if !b.again || t.executionID == "" || len(queues) == 0 {
		return nil
	}
	if !t.known {
		if err := b.p.readTaken(ctx, t); err != nil {
			return err
		}
		t.known = true
	}
	for i := range queues {
		q := &queues[i]
		q.entries = slices.DeleteFunc(q.entries, func(e entry) bool { return t.has(q.url == b.p.hub.TimersURL, &e) })
	}
	return nil
}

// readTaken reads what dispatches have noted from a segment on, strongly consistent.
func (p *Provider) readTaken(ctx context.Context, t *takenOutputs) error {
	in := segmentsQuery(p.hub.Table, t.executionID, provider.Strong)
	in.KeyConditionExpression = aws.String("pk = :pk AND sk BETWEEN :from AND :sk")
	in.ExpressionAttributeValues[":from"] = str(cursorSK(t.from))
	in.ExpressionAttributeValues[":sk"] = str(cursorSK(t.head) + noteSuffix)

	notes, err := p.queryAll(ctx, t.instanceID, in)
	for _, note := range notes {
		t.others = p.addRuns(ctx, t.others, note, attrTaken)
		t.timers = p.addRuns(ctx, t.timers, note, attrTakenTimers)
		if getString(note, attrSK) == cursorSK(t.head)+noteSuffix {
			t.run = max(t.run, getString(note, attrTakenBy))
			t.seen = idsOf(note)
		}
	}
	return err
}

// addRuns adds the ids in an attribute of a note.
func (p *Provider) addRuns(ctx context.Context, set provider.IDSet, note item, name string) provider.IDSet {
	var runs []history.Range
	if doc := getString(note, name); doc != "" && json.Unmarshal([]byte(doc), &runs) != nil {
		p.log.WarnContext(ctx, "dispatch record unreadable, some outputs are sent again",
			"event", logevent.DispatchRecordUnreadable, "execution", getString(note, attrPK),
			"item", getString(note, attrSK))
	}
	for _, r := range runs {
		set = set.Add(r)
	}
	return set
}

// noRun sorts before the names of reconciliations, which are times.
const noRun = "0"

// writtenByNoLater is the condition that an item is of no reconciliation behind :run.
const writtenByNoLater = "(attribute_not_exists(" + attrTakenBy + ") OR " + attrTakenBy + " <= " + valueRun + ")"

// valueRun stands for the run of a reconciliation.
const valueRun = ":run"

// noteTries is how often a note is written that others write at the same time.
const noteTries = 4

// writeNote stores what is taken, also where the context of the sends has ended. A dispatch keeps the name of the reconciliation
// whose note it has read and adds to. What others have added to it since is kept. Where another reconciliation has written a note since, a later
// one if this is one, that note stays, and some outputs may be sent again: were it replaced, its writer would take it for one of before, and send
// all of them again.
func (b *outbox) writeNote(ctx context.Context) {
	t := &b.taken
	if !t.unnoted {
		return
	}
	t.unnoted = false
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
	defer stop()

	for range noteTries {
		in := b.noteOf(t)
		if in == nil {
			return
		}
		err := call(ctx, "DynamoDB.PutItem", t.instanceID, func() error {
			_, err := b.p.table.PutItem(ctx, in)
			return err
		})
		old, others := refusedItem(err, 0)
		switch {
		case err == nil:
			t.seen = idsOf(in.Item)
			return
		case !others:
			b.p.log.WarnContext(ctx, "dispatch record write failed, some outputs may be sent again",
				"event", logevent.DispatchRecordWriteFailed, "instance", t.instanceID, "error", err)
			return
		case t.run == "" || getString(old, attrTakenBy) != t.run:
			return
		}
		t.others = b.p.addRuns(ctx, t.others, old, attrTaken)
		t.timers = b.p.addRuns(ctx, t.timers, old, attrTakenTimers)
		t.seen = idsOf(old)
	}
}

// noteOf returns the write of a note; nil where that is too large.
func (b *outbox) noteOf(t *takenOutputs) *dynamodb.PutItemInput {
	it := item{
		attrPK: str(executionPK(t.executionID)), attrSK: str(cursorSK(t.head) + noteSuffix), attrTTL: unix(b.p.now().Add(cursorLife)),
	}
	in := &dynamodb.PutItemInput{
		TableName: &b.p.hub.Table, Item: it, ConditionExpression: aws.String(writtenByNoLater),
		ExpressionAttributeValues:           item{valueRun: str(cmp.Or(t.run, noRun))},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if t.run != "" {
		it[attrTakenBy] = str(t.run)
		in.ConditionExpression = aws.String("attribute_not_exists(" + attrTakenBy + ") OR " + attrTakenBy + " < " + valueRun + " OR " +
			attrTakenBy + " = " + valueRun + unchanged(t.seen, in.ExpressionAttributeValues))
	}
	for name, set := range map[string]provider.IDSet{attrTaken: t.others, attrTakenTimers: t.timers} {
		doc, _ := json.Marshal(set) //nolint:errchkjson // numbers: cannot fail
		if len(doc) > noteBytes {
			return nil
		}
		if len(set) > 0 {
			it[name] = str(string(doc))
		}
	}
	return in
}

// unchanged is the condition that a note holds the ids that it held when it was seen.
func unchanged(seen, values item) string {
	var condition strings.Builder
	for _, name := range []string{attrTaken, attrTakenTimers} {
		if seen[name] == nil {
			condition.WriteString(" AND attribute_not_exists(" + name + ")")
			continue
		}
		values[":"+name] = seen[name]
		condition.WriteString(" AND " + name + " = :" + name)
	}
	return condition.String()
}

// idsOf returns the attributes of a note that have ids.
func idsOf(note item) item {
	ids := item{}
	for _, name := range []string{attrTaken, attrTakenTimers} {
		if note[name] != nil {
			ids[name] = note[name]
		}
	}
	return ids
}

// cursorSK returns the sort key of a segment's cursor.
func cursorSK(sequence int64) string { return numberedSK(skCursors, sequence) }
