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
		id := timers[i].TimerID
		waits[id] = provider.TimerSpan{TimerID: id, FireAt: timers[i].FireAt, Waits: timers[i].WaitCancel || waits[id].Waits} // an attempt's has the same id
		first = min(first, timers[i].Segment)
	}
	in := p.segmentsFrom(timers[0].ExecutionID, first)
	c := cutter{due: first}
	for page, err := range p.query(ctx, timers[0].InstanceID, in) {
		if err != nil {
			return nil, err
		}
		c.add(page, in.ExclusiveStartKey == nil)
		over := false
		err = c.decode(maySettle, func(s provider.Segment) bool {
			waits.Apply(s.Events)
			over = ended(s.Events)
			return !over
		})
		switch {
		case errors.Is(err, errStub) || over:
			return provider.TimerSpans{}, nil
		case err != nil:
			return waits, nil // it says nothing
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
