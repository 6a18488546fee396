package dynamo

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// errStub: the instance was deleted (R17).
var errStub = errors.New("the segment is a stub")

// waitedFor looks at history, strongly consistent, from the segment on that sent the first of an execution's timers, and returns
// those that are waited for. What is not there, or cannot be read, says nothing: a timer may be of a start whose transaction is
// still to come (R11).
func (p *Provider) waitedFor(ctx context.Context, timers []provider.Timer) (waits provider.TimerSpans, err error) {
	waits = provider.TimerSpans{}
	first := timers[0].Segment
	for i := range timers {
		waits[timers[i].TimerID] = provider.TimerSpan{TimerID: timers[i].TimerID, FireAt: timers[i].FireAt}
		first = min(first, timers[i].Segment)
	}
	in := p.segmentsFrom(timers[0].ExecutionID, first)
	var rest []item
	for page, err := range p.query(ctx, timers[0].InstanceID, in) {
		if err != nil {
			return nil, err
		}
		rest = append(rest, page...)
		var segments []provider.Segment
		segments, rest, err = wholeSegments(rest, in.ExclusiveStartKey == nil, maySettle)
		switch events := provider.EventsOf(segments); {
		case errors.Is(err, errStub) || ended(events):
			return provider.TimerSpans{}, nil
		case err != nil:
			return waits, nil // it says nothing
		default:
			waits.Apply(events)
		}
	}
	return waits, nil
}

// maySettle reports whether among the events of a segment may be one that ends the wait for something. The turn that created ten
// thousand timers is looked at for each batch of them: to decode its events takes a hundred times as long as to find none of these.
func maySettle(doc []byte) bool {
	return slices.ContainsFunc(settling, func(kind []byte) bool { return bytes.Contains(doc, kind) })
}

// settling are the kinds of such events, as they are written.
var settling = func() (kinds [][]byte) {
	for _, k := range history.Kinds() {
		if k.Sourced() || k.Terminal() {
			kinds = append(kinds, []byte(`"kind":"`+string(k)+`"`))
		}
	}
	return kinds
}()

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

// wholeSegments decodes the segments that are there with all their parts and whose documents are wanted (nil: all), and returns the
// items of one that the next page ends.
func wholeSegments(items []item, last bool, wanted func(doc []byte) bool) (segments []provider.Segment, rest []item, err error) {
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
		if segments, err = appendWanted(segments, sequence, items[:parts], wanted); err != nil {
			return nil, nil, err
		}
		items = items[parts:]
	}
	return segments, nil, nil
}

// appendWanted decodes a segment, if its document is wanted.
func appendWanted(segments []provider.Segment, sequence int64, parts []item, wanted func(doc []byte) bool) ([]provider.Segment, error) {
	if wanted != nil {
		if doc, err := segmentDocument(sequence, parts); err != nil || !wanted(doc) {
			return segments, err
		}
	}
	s, err := decodeSegment(sequence, parts)
	return append(segments, s), err
}
