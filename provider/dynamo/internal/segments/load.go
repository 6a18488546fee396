package segments

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/documents"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// executionReader reads the segments of an execution page by page, together with its first item. It reads the first
// segments one by one, and later ones from rollups if there are any. It holds a bounded amount of large data
// (documents.Budget).
type executionReader struct {
	p                       *Store
	instanceID, executionID string
	consistency             provider.Consistency
	rollupFrom              int64         // the first segment from which rollups are read and written; 0 disables them
	notes                   *[]table.Item // receives the keys of dispatch records and cursors (R9); may be nil

	start    table.Item
	segments []provider.Segment
	holding  documents.Budget
	rollups  []rollup // runs of segments for rollups; the last one may be too short
}

// due returns the number of the next segment.
func (l *executionReader) due() int64 { return int64(len(l.segments)) }

// read reads all segments. There are none if the execution was deleted.
func (l *executionReader) read(ctx context.Context) error {
	err := l.readAll(ctx)
	if errors.Is(err, table.ErrDeleted) {
		l.segments, l.start, l.rollups, err = nil, nil, nil, nil
	}
	return err
}

func (l *executionReader) readAll(ctx context.Context) error {
	l.resetNotes()
	more, err := l.readRange(ctx, segmentRange{until: l.rollupFrom})
	if err != nil || !more {
		return err
	}
	rollups := table.RangeQuery( // that start at the next segment or a later one
		table.ExecutionPK(l.executionID), table.RollupSK(l.due()), table.SKRollups+"~", provider.Eventual,
	)
	for it, err := range l.p.table.Items(ctx, l.instanceID, rollups) {
		if err == nil {
			err = l.addRollup(ctx, it)
		}
		if err != nil {
			return err
		}
	}
	l.resetNotes() // because the last segments of the first page are read again
	_, err = l.readRange(ctx, segmentRange{from: l.resumeAt()})
	return err
}

func (l *executionReader) resetNotes() {
	if l.notes != nil {
		*l.notes = nil
	}
}

// resumeAt returns the segment at which to resume the read of segments without rollups. It is the last segment of a
// rollup, which is read again: if that segment does not exist, the history is shorter than the rollup.
func (l *executionReader) resumeAt() int64 { return l.due() - 1 }

// addRollup adds the segments of a rollup, and the segments between it and the previous rollup.
func (l *executionReader) addRollup(ctx context.Context, it table.Item) error {
	segments, err := decodeRollup(it)
	if err != nil {
		l.p.log.WarnContext(ctx, "rollup unreadable, reading its turns one by one", "event", logevent.RollupUnreadable,
			"instance", l.instanceID, "execution", l.executionID, "error", err)
		return nil
	}
	first := segments[0].Sequence
	if first < l.due() {
		return nil // its writer had not read the previous rollup
	}
	if first > l.due() {
		if _, err := l.readRange(ctx, segmentRange{from: l.resumeAt(), to: first - 1}); err != nil {
			return err
		}
	}
	for i := range segments {
		l.add(&segments[i])
	}
	return nil
}

// segmentRange is a part of a history that is read without rollups. It extends from the segment from to the segment to,
// where 0 means the end. If until is not 0, it is read in pages of until items, up to at least until segments.
type segmentRange struct{ from, to, until int64 }

// readRange reads a range, and reports whether there are more segments after it. If the range does not start with
// segment 0, its first segment is already known.
func (l *executionReader) readRange(ctx context.Context, s segmentRange) (more bool, err error) {
	in := queryFrom(l.executionID, s.from)
	in.ConsistentRead = aws.Bool(l.consistency == provider.Strong)
	switch {
	case s.to > 0:
		in.ExpressionAttributeValues[":last"] = table.Str(table.SegmentSK(s.to, 999))
	case l.notes != nil:
		in.ExpressionAttributeValues[":last"] = table.Str(table.SKCursors + "~") // after each of them
	}
	if s.until > 0 {
		in.Limit = aws.Int32(int32(min(s.until, 1<<20)))
	}
	cut := decoder{Next: s.from}
	for page, err := range l.p.table.Query(ctx, l.instanceID, in) {
		if err != nil {
			return false, err
		}
		more = in.ExclusiveStartKey != nil
		cut.Add(splitNotes(page, l.notes), !more)
		if err := l.addAll(&cut); err != nil {
			return false, err
		}
		if s.until > 0 && l.due() >= s.until {
			return more, nil
		}
	}
	if s.from > 0 && cut.Next == s.from || s.to > 0 && cut.Next != s.to+1 {
		return false, table.NewTornError("segment %d is missing, but a rollup contains it", cut.Next)
	}
	return false, nil
}

// addAll adds the complete segments.
func (l *executionReader) addAll(cut *decoder) error {
	if l.start == nil && len(cut.Items) > 0 {
		l.start = withoutEvents(cut.Items[0])
	}
	for {
		sequence := cut.Next
		parts, err := cut.NextParts()
		if err != nil || len(parts) == 0 {
			return err
		}
		if sequence < l.due() {
			continue
		}
		s, err := decode(sequence, parts)
		if err != nil {
			return err
		}
		l.add(&s)
		if l.rollupFrom > 0 && sequence >= l.rollupFrom {
			l.addToRollup(sequence, parts)
		}
	}
}

func (l *executionReader) add(s *provider.Segment) {
	l.holding.Add(s)
	l.segments = append(l.segments, *s)
}

// addToRollup adds a segment to the last run, or starts a new run with it.
func (l *executionReader) addToRollup(sequence int64, parts []table.Item) {
	if n := len(l.rollups); n > 0 && l.rollups[n-1].Add(sequence, parts) {
		return
	}
	if next := (rollup{}); next.Add(sequence, parts) {
		l.rollups = append(l.rollups, next)
	}
}

// rollupCandidates returns the runs that are long enough. It returns none if the execution has ended, because no turn
// reads it again.
func (l *executionReader) rollupCandidates() (runs []rollup) {
	if n := len(l.segments); n == 0 || last(l.segments[n-1].Events).Kind.Terminal() {
		return nil
	}
	for _, r := range l.rollups {
		if r.Length() >= l.rollupFrom {
			runs = append(runs, r)
		}
	}
	return runs
}

func last(events []history.Event) *history.Event { return &events[len(events)-1] }
