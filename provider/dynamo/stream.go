package dynamo

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/perdure/perdure/provider"
)

// streamSegments goes through the segments of an execution, strongly consistent, and holds no more than a page and a segment of them.
// It ends with the first error. What it finds torn it reads again from there: that may be a transaction that was seen by half.
func (p *Provider) streamSegments(ctx context.Context, instanceID, executionID string) iter.Seq2[provider.Segment, error] {
	return p.streamFrom(ctx, segmentStream{provider: p, instanceID: instanceID, executionID: executionID})
}

func (p *Provider) streamFrom(ctx context.Context, s segmentStream) iter.Seq2[provider.Segment, error] {
	return func(yield func(provider.Segment, error) bool) {
		s := s
		for try := 1; ; {
			before := s.next
			err := s.read(ctx, yield)
			if s.next > before {
				try = 1
			}
			_, torn := errors.AsType[*tornError](err)
			switch {
			case err == nil && (s.next > 0 || s.stopped):
				return
			case torn && try < strongTries:
				try++
				continue
			case torn:
				err = fmt.Errorf("%w: %w", provider.ErrCorrupt, err)
			case err == nil: // there is nothing
				err = provider.ErrNotFound
			}
			yield(provider.Segment{}, fmt.Errorf("dynamo: instance %q: execution %s: %w", s.instanceID, s.executionID, err))
			return
		}
	}
}

// segmentStream is how far a history was read.
type segmentStream struct {
	provider                *Provider
	instanceID, executionID string
	next                    int64        // the segment that is due
	stopped                 bool         // nobody wants more
	large                   func() error // is called once, before the second page; may be nil
}

// read yields the segments from the next one on.
func (s *segmentStream) read(ctx context.Context, yield func(provider.Segment, error) bool) error {
	in := segmentsQuery(s.provider.hub.Table, s.executionID, provider.Strong)
	if s.next > 0 {
		in.KeyConditionExpression = aws.String("pk = :pk AND sk BETWEEN :from AND :sk")
		in.ExpressionAttributeValues[":from"], in.ExpressionAttributeValues[":sk"] = str(segmentSK(s.next, 0)), str(skSegments+":") // behind every digit
	}
	var rest []item
	for page, err := range s.provider.query(ctx, s.instanceID, in) {
		if err != nil {
			return err
		}
		if rest, err = s.take(append(rest, page...), yield); err != nil || s.stopped {
			return err
		}
		if large := s.large; large != nil && in.ExclusiveStartKey != nil {
			s.large = nil
			if err := large(); err != nil {
				return err
			}
		}
	}
	if len(rest) > 0 {
		return &tornError{fmt.Sprintf("item %s says %d parts, %d items follow", getString(rest[0], attrSK), getNumber(rest[0], attrParts), len(rest))}
	}
	return nil
}

// take yields what is whole of the items, and returns the rest: a segment of which parts are to come.
func (s *segmentStream) take(items []item, yield func(provider.Segment, error) bool) (rest []item, err error) {
	for len(items) > 0 {
		first := items[0]
		sk := getString(first, attrSK)
		sequence, part, err := parseSegmentSK(sk)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: %w", provider.ErrCorrupt, err)
		case isStub(first), s.next == 0 && sequence == 0 && part == 0 && s.instanceID != getString(first, attrInstance):
			return nil, provider.ErrNotFound // it is being deleted, or another's
		case sequence != s.next || part != 0:
			return nil, &tornError{fmt.Sprintf("item %s where segment %d is due", sk, s.next)}
		}
		parts := int(getNumber(first, attrParts))
		if parts < 1 {
			return nil, &tornError{fmt.Sprintf("item %s says %d parts", sk, parts)}
		}
		if parts > len(items) {
			return items, nil
		}
		segment, err := decodeSegment(sequence, items[:parts])
		if err != nil {
			return nil, err
		}
		items, s.next = items[parts:], s.next+1
		if !yield(segment, nil) {
			s.stopped = true
			return nil, nil
		}
	}
	return nil, nil
}
