package dynamo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// A dispatch that is repeated, and one that fails half way, note what SQS has taken, and whoever repeats it again leaves that out: in an
// hour in which half of all calls fail each output would be sent with every delivery of its trigger. A dispatch that succeeds at once,
// as nearly all do, neither reads nor writes any of it.

// Attributes of a note: the packed ids of the events whose timers, or whose other outputs, are taken.
const (
	attrTakenTimers = "timers"
	attrTaken       = "taken"
	// noteSuffix tells a note from the cursor of a large segment, which may be there beside it.
	noteSuffix = "#taken"
	// noteBytes bounds what a note holds of either. With more nothing is noted, and some is sent again.
	noteBytes = 150 << 10
)

// takenOutputs is what is known to be taken of an execution's outputs. An event causes two at the most: a timer, and something else.
type takenOutputs struct {
	instanceID, executionID string
	// from is the first segment that is sent, and head the last there is: whoever repeats this later, from whatever message, comes by it.
	from, head     int64
	known          bool // what was noted before is read, or there is nothing
	timers, others provider.IDSet
	unnoted        bool
}

// has reports whether an entry for a queue is taken.
func (t *takenOutputs) has(timers bool, e *entry) bool {
	if timers {
		return e.known && t.timers.Has(e.id)
	}
	return e.known && t.others.Has(e.id)
}

// add takes over what became of a batch.
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

// offer sends what is not taken, and remembers what is now, if it is asked to or not all of it is. What SQS will never take is returned
// apart.
func (b *outbox) offer(ctx context.Context, queues outgoing, remember bool) (never []refusedEntry, err error) {
	t := &b.taken
	if err := b.leaveOut(ctx, queues); err != nil {
		return nil, err
	}
	sent, err := b.p.sendAll(ctx, queues)
	if t.executionID != "" && (remember || err != nil) {
		for i := range sent.taken {
			t.add(sent.taken[i].url == b.p.hub.TimersURL, sent.taken[i].entries)
		}
	}
	return sent.refused, err
}

// leaveOut leaves out what is taken, of what may have been sent before.
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
	in.ExpressionAttributeValues[":from"], in.ExpressionAttributeValues[":sk"] = str(cursorSK(t.from)), str(cursorSK(t.head)+noteSuffix)
	notes, err := p.queryAll(ctx, t.instanceID, in)
	for _, note := range notes {
		t.others, t.timers = p.addRuns(ctx, t.others, note, attrTaken), p.addRuns(ctx, t.timers, note, attrTakenTimers)
	}
	return err
}

// addRuns adds the ids that an attribute of a note holds.
func (p *Provider) addRuns(ctx context.Context, set provider.IDSet, note item, name string) provider.IDSet {
	var runs []history.Range
	if doc := getString(note, name); doc != "" && json.Unmarshal([]byte(doc), &runs) != nil {
		p.log.WarnContext(ctx, "what is taken of a turn's outputs cannot be read: some is sent again", "execution", getString(note, attrPK), "item", getString(note, attrSK))
	}
	for _, r := range runs {
		set = set.Add(r)
	}
	return set
}

// note writes down what is taken, also where the context of the sends has ended.
func (b *outbox) note(ctx context.Context) {
	t := &b.taken
	if !t.unnoted {
		return
	}
	t.unnoted = false
	it := item{
		attrPK: str(executionPK(t.executionID)), attrSK: str(cursorSK(t.head) + noteSuffix), attrTTL: unix(b.p.now().Add(cursorLife)),
	}
	for name, set := range map[string]provider.IDSet{attrTaken: t.others, attrTakenTimers: t.timers} {
		doc, _ := json.Marshal(set) //nolint:errchkjson // numbers: cannot fail
		if len(doc) > noteBytes {
			return
		}
		if len(set) > 0 {
			it[name] = str(string(doc))
		}
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
	defer stop()
	err := call(ctx, "DynamoDB.PutItem", t.instanceID, func() error {
		_, err := b.p.table.PutItem(ctx, &dynamodb.PutItemInput{TableName: &b.p.hub.Table, Item: it})
		return err
	})
	if err != nil {
		b.p.log.WarnContext(ctx, "what is taken of a turn's outputs was not written down: some of it may be sent again", "instance", t.instanceID, "error", err)
	}
}

// cursorSK is where it stands how far a segment is sent.
func cursorSK(sequence int64) string { return fmt.Sprintf("%s%010d", skCursors, sequence) }
