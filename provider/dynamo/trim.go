package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

const (
	// trimAtOnce is the number of past executions that are read before the first of them is erased.
	trimAtOnce = 100
	// seekAtOnce is the number of executions after which a search for the oldest one stores its position.
	seekAtOnce = 200
)

// trim erases past executions that ended long enough ago, the oldest first, so that the rest is always a chain without
// a gap. The instance names the oldest execution, and each execution's end the next one.
func (p *Provider) trim(ctx context.Context, it table.Item) (erased int, err error) {
	in, err := instances.Decode(it)
	if err != nil {
		return 0, err
	}
	keep := time.Duration(table.GetNumber(it, table.AttrRetain)) * time.Second
	if keep <= 0 {
		return 0, p.dueNoMore(ctx, it)
	}

	before := p.now().Add(-instances.PastRetention(keep))
	oldest := table.GetString(it, table.AttrOldest)
	if oldest == "" {
		if oldest, err = p.seekOldest(ctx, &in, table.GetString(it, table.AttrOldestSearch)); err != nil {
			return 0, err
		}
	}

	for {
		links, err := p.endedLinks(ctx, &in, oldest, before)
		if errors.Is(err, errLost) {
			return erased, p.forgetOldest(ctx, &in, oldest)
		}
		if err != nil {
			return erased, err
		}

		some := unreferenced(links)
		for _, l := range some {
			if _, err := p.erase(ctx, in.InstanceID, l.id, l.next, nil); err != nil {
				return erased, err
			}
			oldest = l.next
			erased++
		}

		if len(some) < trimAtOnce {
			return erased, p.dueNext(ctx, it, &in, oldest, links[len(some)])
		}
		if err := p.noteOldest(ctx, &in, oldest); err != nil {
			return erased, err
		}
	}
}

// link is a past execution, with the next one and the oldest one that it refers to. The current execution has no next
// one.
type link struct{ id, next, refs string }

// endedLinks reads executions from one on, up to the first one that must be kept, has not ended, or exceeds the number
// that is read at once. That execution comes last.
func (p *Provider) endedLinks(ctx context.Context, in *provider.Instance, from string, before time.Time) (links []link, err error) {
	for at := from; ; {
		l, err := p.readLink(ctx, in, at)
		if err != nil {
			return nil, err
		}
		links = append(links, l)
		// an execution ended when the next one started
		if l.next == "" || len(links) > trimAtOnce || !isBefore(provider.ExecutionStartedAt(l.next), before) {
			return links, nil
		}
		at = l.next
	}
}

// isBefore reports whether one time is before another. It is false for an unknown time.
func isBefore(one, other time.Time) bool { return !one.IsZero() && one.Before(other) }

// unreferenced returns the links before the last one to which no kept execution refers. References become only more
// recent along the chain.
func unreferenced(links []link) []link {
	kept := len(links) - 1
	refs := links[kept].refs
	for kept > 0 && refs != "" && links[kept-1].id >= refs {
		kept--
		if r := links[kept].refs; r != "" && r < refs {
			refs = r
		}
	}
	return links[:kept]
}

// errLost means that neither the execution nor a stub of it exists.
var errLost = errors.New("dynamo: oldest execution is missing")

// readLink reads the start and the end of an execution. The start of a partly erased one is a stub, which names the
// next execution.
func (p *Provider) readLink(ctx context.Context, in *provider.Instance, id string) (link, error) {
	l := link{id: id}
	start, err := p.table.GetExecutionItem(ctx, id, table.SegmentSK(0, 0))
	switch {
	case err != nil:
		return l, err
	case len(start) == 0:
		return l, errLost
	case table.IsStub(start):
		if l.next = table.GetString(start, table.AttrNext); l.next == "" {
			return l, errLost
		}
		return l, nil
	}
	l.refs = table.GetString(start, table.AttrRefs)
	if id == in.ExecutionID {
		return l, nil
	}

	end, err := p.segments.ReadTerminalEvent(ctx, id)
	if err != nil {
		return l, err
	}
	if end.Kind != history.OrchestrationContinuedAsNew || end.ExecutionID == "" {
		return l, fmt.Errorf("execution %s ends with %s, but must continue as new: %w", id, end.Kind,
			provider.ErrCorrupt)
	}
	l.next = end.ExecutionID
	return l, nil
}

// seekOldest searches backwards from the current execution, or from the position of an earlier search.
func (p *Provider) seekOldest(ctx context.Context, in *provider.Instance, from string) (string, error) {
	at := from
	if at == "" {
		at = in.ExecutionID
	}
	for n := 1; ; n++ {
		start, err := p.table.GetExecutionItem(ctx, at, table.SegmentSK(0, 0))
		if err != nil {
			return "", err
		}
		previous := table.GetString(start, table.AttrPrevious)
		if previous == "" || table.IsStub(start) {
			return at, nil
		}
		before, err := p.table.GetExecutionItem(ctx, previous, table.SegmentSK(0, 0))
		if err != nil {
			return "", err
		}
		if len(before) == 0 || table.IsStub(before) {
			return at, nil
		}
		if at = previous; n%seekAtOnce == 0 {
			if err := p.noteTrim(ctx, in, "SET seeking = :seeking", table.Item{":seeking": table.Str(at)}); err != nil {
				return "", err
			}
		}
	}
}

func (p *Provider) noteOldest(ctx context.Context, in *provider.Instance, oldest string) error {
	return p.noteTrim(ctx, in, "SET oldest = :oldest REMOVE seeking", table.Item{":oldest": table.Str(oldest)})
}

// forgetOldest makes the next call for this instance search for the oldest execution from the current one.
func (p *Provider) forgetOldest(ctx context.Context, in *provider.Instance, oldest string) error {
	p.log.WarnContext(ctx, "oldest execution missing, searching again", "event", logevent.ExecutionMissing,
		"instance", in.InstanceID, "execution", oldest)
	return p.noteTrim(ctx, in, "REMOVE oldest, seeking", table.Item{})
}

// noteTrim stores the progress of a trim for the incarnation that was read, unless it is being deleted.
func (p *Provider) noteTrim(ctx context.Context, in *provider.Instance, update string, values table.Item) error {
	values[":start"] = table.Str(in.StartID)
	_, updated, err := p.table.UpdateIf(ctx, in.InstanceID, &dynamodb.UpdateItemInput{
		Key: table.InstanceKey(in.InstanceID), UpdateExpression: &update,
		ConditionExpression: aws.String("startId = :start AND attribute_not_exists(deleting)"), ExpressionAttributeValues: values,
	})
	if err == nil && !updated {
		return &provider.Error{Op: "ApplyRetention", InstanceID: in.InstanceID, Retryable: true, Err: provider.ErrConflict}
	}
	return err
}

// dueNext stores the next due date of a past execution: the first kept one has ended, or can end now at the earliest.
// If the instance has ended in the meantime, its end has stored another due date.
func (p *Provider) dueNext(ctx context.Context, it table.Item, in *provider.Instance, oldest string, kept link) error {
	ends := p.now()
	if kept.next != "" {
		ends = provider.ExecutionStartedAt(kept.next) // zero if it is unknown: due again tomorrow
	}
	keep := time.Duration(table.GetNumber(it, table.AttrRetain)) * time.Second
	due := p.now().Add(time.Second) // due ones that are referred to are checked again tomorrow
	if at := ends.Add(instances.PastRetention(keep)); at.After(due) {
		due = at
	}
	return p.setDue(ctx, it, "SET due = :again, oldest = :oldest REMOVE seeking", table.Item{":again": table.Str(instances.DueKey(in.InstanceID, due)), ":oldest": table.Str(oldest)})
}

// dueNoMore removes an instance from the index, because its code now keeps past executions forever.
func (p *Provider) dueNoMore(ctx context.Context, it table.Item) error {
	return p.setDue(ctx, it, "REMOVE due", table.Item{})
}

func (p *Provider) setDue(ctx context.Context, it table.Item, update string, values table.Item) error {
	values[":due"] = it[table.AttrDue]
	_, _, err := p.table.UpdateIf(ctx, table.GetString(it, table.AttrPK)[len(table.IDPrefix):], &dynamodb.UpdateItemInput{
		Key: table.Item{table.AttrPK: it[table.AttrPK], table.AttrSK: it[table.AttrSK]}, UpdateExpression: &update,
		ConditionExpression: aws.String("due = :due AND attribute_not_exists(deleting)"), ExpressionAttributeValues: values,
	})
	return err
}
