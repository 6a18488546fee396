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
)

const (
	// trimAtOnce is how many past executions are read before the first of them is erased.
	trimAtOnce = 100
	// seekAtOnce is the number of executions after which a search for the oldest one stores its position.
	seekAtOnce = 200
)

// trim erases past executions that ended long enough ago, the oldest first, so that the rest is a chain without a gap
// at any moment. The instance names the oldest, and each execution's end the next.
func (p *Provider) trim(ctx context.Context, it item) (erased int, err error) {
	in, err := decodeInstance(it)
	if err != nil {
		return 0, err
	}
	keep := time.Duration(getNumber(it, attrRetain)) * time.Second
	if keep <= 0 {
		return 0, p.dueNoMore(ctx, it)
	}

	before := p.now().Add(-pastRetention(keep))
	oldest := getString(it, attrOldest)
	if oldest == "" {
		if oldest, err = p.seekOldest(ctx, &in, getString(it, attrSeeking)); err != nil {
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

// link is a past execution: the one that continues it, and the oldest one that it refers to. The current execution has
// no next.
type link struct{ id, next, refs string }

// endedLinks reads on from an execution to the first one that is to be kept, that has not ended, or that exceeds the
// number read at once. That one comes last.
func (p *Provider) endedLinks(ctx context.Context, in *provider.Instance, from string, before time.Time) (links []link, err error) {
	for at := from; ; {
		l, err := p.readLink(ctx, in, at)
		if err != nil {
			return nil, err
		}
		links = append(links, l)
		if l.next == "" || len(links) > trimAtOnce || !isBefore(provider.ExecutionStartedAt(l.next), before) { // an execution ended when the next one began
			return links, nil
		}
		at = l.next
	}
}

// isBefore reports whether one time is before another; an unknown time is not.
func isBefore(one, other time.Time) bool { return !one.IsZero() && one.Before(other) }

// unreferenced returns the links, before the last, to which no kept execution refers. References only become more
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

// errLost reports that there is neither such an execution any more nor a stub of it.
var errLost = errors.New("dynamo: oldest execution is missing")

// readLink reads an execution's start and end. One that is partly erased has a stub for its start, which names the
// next.
func (p *Provider) readLink(ctx context.Context, in *provider.Instance, id string) (link, error) {
	l := link{id: id}
	start, err := p.getExecutionItem(ctx, id, segmentSK(0, 0))
	switch {
	case err != nil:
		return l, err
	case len(start) == 0:
		return l, errLost
	case isStub(start):
		if l.next = getString(start, attrNext); l.next == "" {
			return l, errLost
		}
		return l, nil
	}
	l.refs = getString(start, attrRefs)
	if id == in.ExecutionID {
		return l, nil
	}

	end, err := p.ReadTerminalEvent(ctx, id)
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

// seekOldest goes back from the current execution, or from where an earlier search has stopped.
func (p *Provider) seekOldest(ctx context.Context, in *provider.Instance, from string) (string, error) {
	at := from
	if at == "" {
		at = in.ExecutionID
	}
	for n := 1; ; n++ {
		start, err := p.getExecutionItem(ctx, at, segmentSK(0, 0))
		if err != nil {
			return "", err
		}
		previous := getString(start, attrPrevious)
		if previous == "" || isStub(start) {
			return at, nil
		}
		before, err := p.getExecutionItem(ctx, previous, segmentSK(0, 0))
		if err != nil {
			return "", err
		}
		if len(before) == 0 || isStub(before) {
			return at, nil
		}
		if at = previous; n%seekAtOnce == 0 {
			if err := p.noteTrim(ctx, in, "SET seeking = :seeking", item{":seeking": str(at)}); err != nil {
				return "", err
			}
		}
	}
}

func (p *Provider) noteOldest(ctx context.Context, in *provider.Instance, oldest string) error {
	return p.noteTrim(ctx, in, "SET oldest = :oldest REMOVE seeking", item{":oldest": str(oldest)})
}

// forgetOldest makes the next call for this instance search for the oldest execution from the current one.
func (p *Provider) forgetOldest(ctx context.Context, in *provider.Instance, oldest string) error {
	p.log.WarnContext(ctx, "oldest execution missing, searching again", "event", logevent.ExecutionMissing,
		"instance", in.InstanceID, "execution", oldest)
	return p.noteTrim(ctx, in, "REMOVE oldest, seeking", item{})
}

// noteTrim stores how far a trim has come, in the life that was read, unless it is being deleted.
func (p *Provider) noteTrim(ctx context.Context, in *provider.Instance, update string, values item) error {
	values[":start"] = str(in.StartID)
	updated, err := p.updateIf(ctx, in.InstanceID, &dynamodb.UpdateItemInput{
		TableName: &p.hub.Table, Key: instanceKey(in.InstanceID), UpdateExpression: &update,
		ConditionExpression: aws.String("startId = :start AND attribute_not_exists(deleting)"), ExpressionAttributeValues: values,
	})
	if err == nil && !updated {
		return &provider.Error{Op: "ApplyRetention", InstanceID: in.InstanceID, Retryable: true, Err: provider.ErrConflict}
	}
	return err
}

// dueNext stores when a past execution is due next: the first one that is kept has ended, or may end now at the
// earliest. If the instance has ended meanwhile, its end has stored its own due date.
func (p *Provider) dueNext(ctx context.Context, it item, in *provider.Instance, oldest string, kept link) error {
	ends := p.now()
	if kept.next != "" {
		ends = provider.ExecutionStartedAt(kept.next) // the zero time where that is not known: due again tomorrow
	}
	keep := time.Duration(getNumber(it, attrRetain)) * time.Second
	due := p.now().Add(time.Second) // what is due already, and referred to, is looked at again tomorrow
	if at := ends.Add(pastRetention(keep)); at.After(due) {
		due = at
	}
	return p.setDue(ctx, it, "SET due = :again, oldest = :oldest REMOVE seeking", item{":again": str(dueKey(in.InstanceID, due)), ":oldest": str(oldest)})
}

// dueNoMore removes an instance from the index: its code now keeps past executions for ever.
func (p *Provider) dueNoMore(ctx context.Context, it item) error {
	return p.setDue(ctx, it, "REMOVE due", item{})
}

func (p *Provider) setDue(ctx context.Context, it item, update string, values item) error {
	values[":due"] = it[attrDue]
	_, err := p.updateIf(ctx, getString(it, attrPK)[len(idPrefix):], &dynamodb.UpdateItemInput{
		TableName: &p.hub.Table, Key: item{attrPK: it[attrPK], attrSK: it[attrSK]}, UpdateExpression: &update,
		ConditionExpression: aws.String("due = :due AND attribute_not_exists(deleting)"), ExpressionAttributeValues: values,
	})
	return err
}
