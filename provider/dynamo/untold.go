package dynamo

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// attrUntold, of an instance that is being deleted and whose history was too large to be read before its end, is how far those of its children
// are told that it has left outstanding. The fence alone keeps turns out; who is told when is nobody's haste, and so a deletion takes no longer call
// than it is given, however large the history is.
const attrUntold = "untold"

// condemnLook is how long a deletion reads the history of what is not over before it ends it all the same.
const condemnLook = 5 * time.Second

// untold is where a walk through a history, from its end to its beginning, has come to.
type untold struct {
	// Before is the segment that the walk goes on before.
	Before int64 `json:"before"`
	// Settled are the ids of earlier events that were settled in what it has passed: at any place those that were under way there, which are few.
	Settled cancelEntry `json:"settled,omitzero"`
}

func (u *untold) settled() map[int64]bool {
	ids := map[int64]bool{}
	for _, r := range u.Settled.cancel().IDs {
		for id := r.First; id <= r.Last; id++ {
			ids[id] = true
		}
	}
	return ids
}

// untoldNoted is after how long a walk notes how far it has come.
const untoldNoted = 3 * time.Second

// tellChildren cancels the children that an instance has left outstanding, where its fence does not (R17). Each is told before it is noted how far the walk has come:
// to be told twice does no harm.
func (p *Provider) tellChildren(ctx context.Context, in *provider.Instance, it item) error {
	var at untold
	doc := getString(it, attrUntold)
	if doc == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(doc), &at); err != nil {
		return fmt.Errorf("dynamo: instance %q: %s: %w", in.InstanceID, attrUntold, err)
	}
	settled := at.settled()
	giveBack, err := p.takeLarge(ctx)
	if err != nil {
		return err
	}
	defer giveBack()
	noted := p.now()
	for s, err := range p.segmentsBefore(ctx, in, at.Before) {
		if err != nil {
			return err
		}
		if err := p.cancelChildren(ctx, in, unsettledChildren(s.Events, settled)); err != nil {
			return err
		}
		if p.now().Sub(noted) < untoldNoted || s.Sequence == 0 {
			continue
		}
		noted = p.now()
		if err := p.noteUntold(ctx, in, s.Sequence, settled); err != nil {
			return err
		}
	}
	return nil
}

// unsettledChildren are the children that events have started and neither they nor later ones have settled; settled goes on to what is before them.
func unsettledChildren(events []history.Event, settled map[int64]bool) (children []history.Event) {
	for _, e := range slices.Backward(events) {
		for i := range e.Inputs { // parked: they have settled what they are about
			note(&e.Inputs[i], settled)
		}
		note(&e, settled)
		if e.Kind == history.SubOrchestrationScheduled && !settled[e.ID] {
			children = append(children, history.Event{
				Kind: history.SubOrchestrationCancelRequested, SourceEventID: e.ID, InstanceID: e.InstanceID, Reason: history.ReasonInstanceDeleted,
			})
		}
		delete(settled, e.ID)
	}
	return children
}

func note(e *history.Event, settled map[int64]bool) {
	for _, id := range e.Settles() {
		settled[id] = true
	}
}

// cancelChildren sends the cancels that events ask for.
func (p *Provider) cancelChildren(ctx context.Context, in *provider.Instance, cancels []history.Event) error {
	if len(cancels) == 0 {
		return nil
	}
	out := provider.OutputsOf(provider.Origin{InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Ended: true}, provider.Segment{Events: cancels}, nil)
	refused, err := p.sendOutputs(ctx, &out)
	for i := range refused {
		p.log.WarnContext(ctx, "a child of a deleted instance cannot be cancelled", "instance", in.InstanceID, "error", refused[i].Failure.Message)
	}
	return err
}

func (p *Provider) noteUntold(ctx context.Context, in *provider.Instance, before int64, settled map[int64]bool) error {
	at, err := encodeUntold(before, settled)
	if err != nil {
		return err
	}
	updated, err := p.updateIf(ctx, in.InstanceID, &dynamodb.UpdateItemInput{
		TableName: &p.hub.Table, Key: instanceKey(in.InstanceID), UpdateExpression: aws.String("SET updated = :moved, untold = :untold"),
		ConditionExpression:       aws.String("execution = :x AND attribute_exists(deleting) AND attribute_not_exists(erasing)"),
		ExpressionAttributeValues: item{":moved": str(formatTime(p.now())), ":untold": str(at), ":x": str(in.ExecutionID)},
	})
	if err == nil && !updated {
		return errGoOn
	}
	return err
}

func encodeUntold(before int64, settled map[int64]bool) (string, error) {
	ids := make([]int64, 0, len(settled))
	for id := range settled {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var c provider.ActivityCancel
	for _, id := range ids {
		c.IDs = history.AppendID(c.IDs, id)
	}
	doc, err := json.Marshal(untold{Before: before, Settled: cancelEntryOf(&c)})
	if err != nil {
		return "", fmt.Errorf("dynamo: %s: %w", attrUntold, err)
	}
	return string(doc), nil
}

// segmentsBefore goes back through the segments of an instance's execution, strongly consistent, and holds no more than a page and a segment of them. One that
// cannot be read is left out: what it says nobody knows.
func (p *Provider) segmentsBefore(ctx context.Context, in *provider.Instance, before int64) iter.Seq2[provider.Segment, error] {
	query := segmentsQuery(p.hub.Table, in.ExecutionID, provider.Strong)
	query.ScanIndexForward = aws.Bool(false)
	query.KeyConditionExpression = aws.String("pk = :pk AND sk BETWEEN :first AND :sk")
	query.ExpressionAttributeValues[":first"], query.ExpressionAttributeValues[":sk"] = str(skSegments), str(segmentSK(before, 0))
	return func(yield func(provider.Segment, error) bool) {
		var parts []item // of a segment, the last one first
		for page, err := range p.query(ctx, in.InstanceID, query) {
			if err != nil {
				yield(provider.Segment{}, err)
				return
			}
			for _, it := range page {
				if parts = append(parts, it); getNumber(it, attrParts) == 0 && !isStub(it) {
					continue
				}
				s, err := p.segmentOf(ctx, in, parts)
				parts = nil
				if (err != nil || len(s.Events) > 0 && s.Sequence != before) && (!yield(s, err) || err != nil) {
					return
				}
			}
		}
	}
}

// segmentOf decodes a segment, of parts the last of which comes first. It is empty where it cannot be read, and errGoOn where it is erased: then somebody else
// has told the children.
func (p *Provider) segmentOf(ctx context.Context, in *provider.Instance, parts []item) (s provider.Segment, err error) {
	slices.Reverse(parts)
	if isStub(parts[0]) {
		return s, errGoOn
	}
	sk := getString(parts[0], attrSK)
	sequence, _, err := parseSegmentSK(sk)
	if err == nil {
		s = wholeSegment(sequence, parts)
	}
	if len(s.Events) == 0 {
		p.log.WarnContext(ctx, "a segment of a deleted instance cannot be read: children that it started are not cancelled", "instance", in.InstanceID, "segment", sk)
	}
	return s, nil
}

// lookAtMost is lookAtAll within a time. What is not whole was all that there was time for.
func (p *Provider) lookAtMost(ctx context.Context, in *provider.Instance, limit time.Duration) (d *deathbed, whole bool, err error) {
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, end.Sub(p.now())/4) //nolint:mnd // a quarter
	}
	look, stop := context.WithTimeout(ctx, limit)
	defer stop()
	d, err = p.lookAtAll(look, in)
	if err != nil && look.Err() != nil && ctx.Err() == nil {
		return d, false, nil
	}
	return d, true, err
}

// largeAtOnce is how many large histories a process reads side by side. A hundred deletions may be under way in a function of 256 MB.
const largeAtOnce = 2

// takeLarge waits for a place among those that read large histories, until ctx ends.
func (p *Provider) takeLarge(ctx context.Context) (giveBack func(), err error) {
	select {
	case p.large <- struct{}{}:
		return func() { <-p.large }, nil
	case <-ctx.Done():
		return func() {}, &provider.Error{Op: "DynamoDB.Query", Retryable: true, Err: context.Cause(ctx)}
	}
}
