package dynamo

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// errStub: the instance was deleted (R17).
var errStub = errors.New("the segment is a stub")

// isWaitedFor looks at history, strongly consistent, from the segment on that sent a timer. What is not there, or cannot be
// read, says nothing: the timer may be of a start whose transaction is still to come (R11).
func (p *Provider) isWaitedFor(ctx context.Context, t *provider.Timer) (bool, error) {
	in := p.segmentsFrom(t.ExecutionID, t.Segment)
	open := provider.TimerSpans{t.TimerID: {TimerID: t.TimerID, FireAt: t.FireAt}}
	var rest []item
	for page, err := range p.query(ctx, t.InstanceID, in) {
		if err != nil {
			return false, err
		}
		rest = append(rest, page...)
		var segments []provider.Segment
		if segments, rest, err = wholeSegments(rest, in.ExclusiveStartKey == nil); err != nil {
			return !errors.Is(err, errStub), nil
		}
		events := provider.EventsOf(segments)
		open.Apply(events)
		if _, waits := open[t.TimerID]; !waits || ended(events) {
			return false, nil
		}
	}
	return true, nil
}

// segmentsFrom asks for the segments of an execution from one on, strongly consistent.
func (p *Provider) segmentsFrom(executionID string, sequence int64) *dynamodb.QueryInput {
	in := segmentsQuery(p.hub.Table, executionID, provider.Strong)
	in.KeyConditionExpression = aws.String("pk = :pk AND sk BETWEEN :sk AND :end")
	in.ExpressionAttributeValues[":sk"], in.ExpressionAttributeValues[":end"] = str(segmentSK(sequence, 0)), str(skSegments+"~")
	return in
}

func ended(events []history.Event) bool {
	return len(events) > 0 && events[len(events)-1].Kind.Terminal()
}

// wholeSegments decodes the segments that are there with all their parts, and returns the items of one that the next page ends.
func wholeSegments(items []item, last bool) (segments []provider.Segment, rest []item, err error) {
	for len(items) > 0 {
		if isStub(items[0]) {
			return nil, nil, errStub
		}
		sequence, _, err := parseSegmentSK(getString(items[0], attrSK))
		parts := int(getNumber(items[0], attrParts))
		switch {
		case err != nil:
			return nil, nil, err
		case parts > len(items) && !last:
			return segments, items, nil
		case parts < 1 || parts > len(items):
			return nil, nil, &tornError{"item " + getString(items[0], attrSK) + " lacks its parts"}
		}
		s, err := decodeSegment(sequence, items[:parts])
		if err != nil {
			return nil, nil, err
		}
		segments, items = append(segments, s), items[parts:]
	}
	return segments, nil, nil
}
