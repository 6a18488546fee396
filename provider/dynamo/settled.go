package dynamo

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure/provider"
)

// ReadSettled reads segments page by page, and keeps of them what they settle.
func (p *Provider) ReadSettled(ctx context.Context, executionID string, from int64) (provider.Settlements, error) {
	for try := 1; ; try++ {
		s, err := p.settledSince(ctx, executionID, from)
		if _, torn := errors.AsType[*tornError](err); torn && try < strongTries {
			continue
		} else if torn {
			err = fmt.Errorf("%w: %w", provider.ErrCorrupt, err)
		}
		if errors.Is(err, errStub) {
			return provider.Settlements{Next: from, Over: true, Deleted: true}, nil
		}
		if err != nil {
			return s, fmt.Errorf("dynamo: execution %s: %w", executionID, err)
		}
		return s, nil
	}
}

func (p *Provider) settledSince(ctx context.Context, executionID string, from int64) (provider.Settlements, error) {
	s := provider.Settlements{Next: from}
	in := p.segmentsFrom(executionID, from)
	var rest []item
	for page, err := range p.query(ctx, "", in) {
		if err != nil {
			return s, err
		}
		rest = append(rest, page...)
		var segments []provider.Segment
		if segments, rest, err = wholeSegments(rest, in.ExclusiveStartKey == nil, nil); err != nil {
			return s, err
		}
		for i := range segments {
			if segments[i].Sequence != s.Next {
				return s, &tornError{fmt.Sprintf("segment %d where segment %d is due", segments[i].Sequence, s.Next)}
			}
			s.Apply(&segments[i])
		}
	}
	return s, nil
}
