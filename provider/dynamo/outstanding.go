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
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/cancels"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// attrOutstanding is an attribute of a deleting instance whose history was too large to read before its end. It stores
// the progress of cancelling the outstanding children. The terminal segment alone prevents further turns, and the
// children are not urgent. The calls of a deletion therefore stay short, however large the history is.
const attrOutstanding = "untold"

// condemnLook limits the time for which a deletion reads the history of a running instance, before it ends the instance
// anyway.
const condemnLook = 5 * time.Second

// outstanding is the position of a search through a history from its end to its beginning.
type outstanding struct {
	// Before is the segment before which the search continues.
	Before int64 `json:"before"`
	// Settled holds the IDs of earlier events that the searched segments have settled: at each position only those of
	// the work that is running there.
	Settled cancels.Decision `json:"settled,omitzero"`
}

func (u *outstanding) settled() map[int64]bool {
	ids := map[int64]bool{}
	for _, r := range u.Settled.Cancel().IDs {
		for id := r.First; id <= r.Last; id++ {
			ids[id] = true
		}
	}
	return ids
}

// outstandingNoted is the interval at which a search stores its position.
const outstandingNoted = 3 * time.Second

// cancelOutstanding cancels the outstanding children of an instance, unless its terminal segment does (R17). It sends
// the cancels before it stores the position. Cancels can be sent twice.
func (p *Provider) cancelOutstanding(ctx context.Context, in *provider.Instance, it table.Item) error {
	var at outstanding
	doc := table.GetString(it, attrOutstanding)
	if doc == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(doc), &at); err != nil {
		return fmt.Errorf("dynamo: instance %q: %s: %w", in.InstanceID, attrOutstanding, err)
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
		if err := p.cancelChildren(ctx, in, append(unsettledChildren(s.Events, settled), callersIn(s.Events)...)); err != nil {
			return err
		}
		if p.now().Sub(noted) < outstandingNoted || s.Sequence == 0 {
			continue
		}
		noted = p.now()
		if err := p.noteOutstanding(ctx, in, s.Sequence, settled); err != nil {
			return err
		}
	}
	return nil
}

// unsettledChildren returns the children that the events have started and that neither these nor later events have
// settled. It updates settled for the earlier events.
func unsettledChildren(events []history.Event, settled map[int64]bool) (children []history.Event) {
	for _, e := range slices.Backward(events) {
		for i := range e.Inputs { // parked inputs have settled their events
			addSettled(&e.Inputs[i], settled)
		}
		addSettled(&e, settled)
		if e.Kind == history.SubOrchestrationScheduled && !settled[e.ID] {
			children = append(children, history.Event{
				Kind: history.SubOrchestrationCancelRequested, SourceEventID: e.ID, InstanceID: e.InstanceID, Reason: history.ReasonInstanceDeleted,
			})
		}
		delete(settled, e.ID)
	}
	return children
}

// callersIn returns an end that responds to all callers that waited for updates in a segment. A caller that has a
// response drops this one.
func callersIn(events []history.Event) []history.Event {
	end := history.Event{Kind: history.OrchestrationTerminated}
	for e := range awaitedIn(events) {
		end.Callers = append(end.Callers, *e.Parent)
	}
	if len(end.Callers) == 0 {
		return nil
	}
	return []history.Event{end}
}

// awaitedIn yields the events about orchestrations that wait for updates, including parked inputs.
func awaitedIn(events []history.Event) iter.Seq[*history.Event] {
	waits := func(e *history.Event) bool { return e.Kind == history.UpdateAwaited && e.Parent != nil }
	return func(yield func(*history.Event) bool) {
		for i := range events {
			if e := &events[i]; waits(e) && !yield(e) {
				return
			}
			for j := range events[i].Inputs {
				if e := &events[i].Inputs[j]; waits(e) && !yield(e) {
					return
				}
			}
		}
	}
}

func addSettled(e *history.Event, settled map[int64]bool) {
	for _, id := range e.Settles() {
		settled[id] = true
	}
}

// cancelChildren sends the cancels of these events.
func (p *Provider) cancelChildren(ctx context.Context, in *provider.Instance, cancels []history.Event) error {
	if len(cancels) == 0 {
		return nil
	}
	out := provider.OutputsOf(provider.Origin{InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Ended: true}, provider.Segment{Events: cancels}, nil)
	refused, err := p.outbox.SendOutputs(ctx, &out)
	for i := range refused {
		p.log.WarnContext(ctx, "sub-orchestration of a deleted instance not cancelled",
			"event", logevent.DeletionCancelRejected, "instance", in.InstanceID, "error", refused[i].Failure.Message)
	}
	return err
}

func (p *Provider) noteOutstanding(ctx context.Context, in *provider.Instance, before int64, settled map[int64]bool) error {
	at, err := encodeOutstanding(before, settled)
	if err != nil {
		return err
	}
	_, updated, err := p.table.UpdateIf(ctx, in.InstanceID, &dynamodb.UpdateItemInput{
		Key: table.InstanceKey(in.InstanceID), UpdateExpression: aws.String("SET updated = :moved, untold = :untold"),
		ConditionExpression:       aws.String("execution = :x AND attribute_exists(deleting) AND attribute_not_exists(erasing)"),
		ExpressionAttributeValues: table.Item{":moved": table.Str(table.FormatTime(p.now())), ":untold": table.Str(at), ":x": table.Str(in.ExecutionID)},
	})
	if err == nil && !updated {
		return errGoOn
	}
	return err
}

func encodeOutstanding(before int64, settled map[int64]bool) (string, error) {
	ids := make([]int64, 0, len(settled))
	for id := range settled {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var c provider.ActivityCancel
	for _, id := range ids {
		c.IDs = history.AppendID(c.IDs, id)
	}
	doc, err := json.Marshal(outstanding{Before: before, Settled: cancels.NewDecision(&c)})
	if err != nil {
		return "", fmt.Errorf("dynamo: %s: %w", attrOutstanding, err)
	}
	return string(doc), nil
}

// segmentsBefore yields the segments of an instance's execution backwards, with strong consistency. It holds at most
// one page and one segment in memory, and skips unreadable segments.
func (p *Provider) segmentsBefore(ctx context.Context, in *provider.Instance, before int64) iter.Seq2[provider.Segment, error] {
	query := table.SegmentsQuery(in.ExecutionID, provider.Strong)
	query.ScanIndexForward = aws.Bool(false)
	query.KeyConditionExpression = aws.String("pk = :pk AND sk BETWEEN :first AND :sk")
	query.ExpressionAttributeValues[":first"] = table.Str(table.SKSegments)
	query.ExpressionAttributeValues[":sk"] = table.Str(table.SegmentSK(before, 0))

	return func(yield func(provider.Segment, error) bool) {
		var parts []table.Item // the parts of a segment arrive last part first
		for page, err := range p.table.Query(ctx, in.InstanceID, query) {
			if err != nil {
				yield(provider.Segment{}, err)
				return
			}
			for _, it := range page {
				if parts = append(parts, it); table.GetNumber(it, table.AttrParts) == 0 && !table.IsStub(it) {
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

// segmentOf decodes a segment whose parts are in reverse order. It returns an empty segment if the segment cannot be
// read, and errGoOn if it is erased: another process has then cancelled the children.
func (p *Provider) segmentOf(ctx context.Context, in *provider.Instance, parts []table.Item) (s provider.Segment, err error) {
	slices.Reverse(parts)
	if table.IsStub(parts[0]) {
		return s, errGoOn
	}
	sk := table.GetString(parts[0], table.AttrSK)
	sequence, _, err := table.ParseSegmentSK(sk)
	if err == nil {
		s = segments.DecodeComplete(sequence, parts)
	}
	if len(s.Events) == 0 {
		p.log.WarnContext(ctx, "segment of an ending instance unreadable, its calls are not notified",
			"event", logevent.SegmentUnreadable, "instance", in.InstanceID, "segment", sk)
	}
	return s, nil
}

// lookAtMost is lookAtAll with a time limit. whole is false if the limit was reached.
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

// largeAtOnce is the number of large histories that a process reads concurrently. A hundred deletions can run in a
// function with 256 MB.
const largeAtOnce = 2

// takeLarge acquires the semaphore for reads of large histories, or returns when ctx ends.
func (p *Provider) takeLarge(ctx context.Context) (giveBack func(), err error) {
	select {
	case p.large <- struct{}{}:
		return func() { <-p.large }, nil
	case <-ctx.Done():
		return func() {}, &provider.Error{Op: "DynamoDB.Query", Retryable: true, Err: context.Cause(ctx)}
	}
}
