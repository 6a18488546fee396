package finalexec

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// ErrChanged means that the instance has changed since it was read. The deletion continues from its present state.
var ErrChanged = errors.New("dynamo: instance has changed")

// SegmentsBefore yields the segments of an instance's execution backwards, with strong consistency. It holds at most
// one page and one segment in memory, and skips unreadable segments.
func (rd *Reader) SegmentsBefore(
	ctx context.Context, in *provider.Instance, before int64,
) iter.Seq2[provider.Segment, error] {
	query := table.RangeQuery(
		table.ExecutionPK(in.ExecutionID), table.SKSegments, table.SegmentSK(before, 0), provider.Strong,
	)
	query.ScanIndexForward = aws.Bool(false)
	return func(yield func(provider.Segment, error) bool) {
		var parts []table.Item // the parts of a segment arrive last part first
		for it, err := range rd.table.Items(ctx, in.InstanceID, query) {
			if err != nil {
				yield(provider.Segment{}, err)
				return
			}
			if parts = append(parts, it); table.GetNumber(it, table.AttrParts) == 0 && !table.IsStub(it) {
				continue
			}
			s, err := rd.decode(ctx, in, parts)
			parts = nil
			if (err != nil || len(s.Events) > 0 && s.Sequence != before) && (!yield(s, err) || err != nil) {
				return
			}
		}
	}
}

// decode decodes a segment whose parts are in reverse order. It returns an empty segment if the segment cannot be
// read, and ErrChanged if it is erased: another process has then cancelled the children.
func (rd *Reader) decode(
	ctx context.Context, in *provider.Instance, parts []table.Item,
) (s provider.Segment, err error) {
	slices.Reverse(parts)
	if table.IsStub(parts[0]) {
		return s, ErrChanged
	}
	sk := table.GetString(parts[0], table.AttrSK)
	sequence, _, err := table.ParseSegmentSK(sk)
	if err == nil {
		s = segments.DecodeComplete(sequence, parts)
	}
	if len(s.Events) == 0 {
		rd.log.WarnContext(ctx, "segment of an ending instance unreadable, its calls are not notified",
			"event", logevent.SegmentUnreadable, "instance", in.InstanceID, "segment", sk)
	}
	return s, nil
}
