package dynamo

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// load reads the segments of an execution page by page, and the item that it begins with: the first ones as they are,
// and where there are more what is rolled up as such. It holds a bounded amount of large data (provider.DataBudget).
type load struct {
	p                       *Provider
	instanceID, executionID string
	consistency             provider.Consistency
	rolled                  int64   // from which segment on rollups are read and made; 0: none are
	notes                   *[]item // where the keys of notes and cursors go (R9); may be nil

	start    item
	segments []provider.Segment
	holding  provider.DataBudget
	runs     []run // what could be rolled up; the last one may be too short
}

// due is the segment that comes next.
func (l *load) due() int64 { return int64(len(l.segments)) }

// read reads all. No segments remain where the execution was deleted.
func (l *load) read(ctx context.Context) error {
	err := l.readAll(ctx)
	if errors.Is(err, errStub) {
		l.segments, l.start, l.runs, err = nil, nil, nil, nil
	}
	return err
}

func (l *load) readAll(ctx context.Context) error {
	l.forgetNotes()
	more, err := l.readRange(ctx, span{until: l.rolled})
	if err != nil || !more {
		return err
	}
	for page, err := range l.p.query(ctx, l.instanceID, l.p.rollupsFrom(l.executionID, l.due())) {
		if err != nil {
			return err
		}
		for _, it := range page {
			if err := l.take(ctx, it); err != nil {
				return err
			}
		}
	}
	l.forgetNotes() // those that the first page ended with come again
	_, err = l.readRange(ctx, span{from: l.known()})
	return err
}

func (l *load) forgetNotes() {
	if l.notes != nil {
		*l.notes = nil
	}
}

// known is the segment from which on to read what is not rolled up: the last one of a rollup once more, since a history
// without it has not come that far, whatever the rollup says.
func (l *load) known() int64 { return l.due() - 1 }

// take adds the segments of a rollup, and what lies between it and the one before.
func (l *load) take(ctx context.Context, it item) error {
	segments, err := unroll(it)
	if err != nil {
		l.p.log.WarnContext(ctx, "rollup unreadable, reading its turns one by one", "event", logevent.RollupUnreadable,
			"instance", l.instanceID, "execution", l.executionID, "error", err)
		return nil
	}
	first := segments[0].Sequence
	if first < l.due() {
		return nil // it was written by who had not seen the one before
	}
	if first > l.due() {
		if _, err := l.readRange(ctx, span{from: l.known(), to: first - 1}); err != nil {
			return err
		}
	}
	for i := range segments {
		l.add(&segments[i])
	}
	return nil
}

// span is a part of a history that is read as it is: from one segment to another (0: the end), or, where until is not 0,
// a page of so many items and what it takes to have so many segments.
type span struct{ from, to, until int64 }

// readRange reads a span, and reports whether there is more behind it. The first segment of one that begins behind the
// start is known already.
func (l *load) readRange(ctx context.Context, s span) (more bool, err error) {
	in := l.p.segmentsFrom(l.executionID, s.from)
	in.ConsistentRead = aws.Bool(l.consistency == provider.Strong)
	switch {
	case s.to > 0:
		in.ExpressionAttributeValues[":end"] = str(segmentSK(s.to, 999))
	case l.notes != nil:
		in.ExpressionAttributeValues[":end"] = str(skCursors + "~") // behind each of them
	}
	if s.until > 0 {
		in.Limit = aws.Int32(int32(min(s.until, 1<<20)))
	}
	cut := cutter{due: s.from}
	for page, err := range l.p.query(ctx, l.instanceID, in) {
		if err != nil {
			return false, err
		}
		more = in.ExclusiveStartKey != nil
		cut.add(withoutNotes(page, l.notes), !more)
		if err := l.addAll(&cut); err != nil {
			return false, err
		}
		if s.until > 0 && l.due() >= s.until {
			return more, nil
		}
	}
	if s.from > 0 && cut.due == s.from || s.to > 0 && cut.due != s.to+1 {
		return false, &tornError{fmt.Sprintf("segment %d is missing, but a rollup contains it", cut.due)}
	}
	return false, nil
}

// addAll adds the segments that have all their parts.
func (l *load) addAll(cut *cutter) error {
	if l.start == nil && len(cut.items) > 0 {
		l.start = header(cut.items[0])
	}
	for {
		sequence := cut.due
		parts, err := cut.cut()
		if err != nil || len(parts) == 0 {
			return err
		}
		if sequence < l.due() {
			continue
		}
		s, err := decodeSegment(sequence, parts)
		if err != nil {
			return err
		}
		l.add(&s)
		if l.rolled > 0 && sequence >= l.rolled {
			l.roll(sequence, parts)
		}
	}
}

func (l *load) add(s *provider.Segment) {
	l.holding.Add(s)
	l.segments = append(l.segments, *s)
}

// roll adds a segment to the last run, or begins another one with it.
func (l *load) roll(sequence int64, parts []item) {
	if n := len(l.runs); n > 0 && l.runs[n-1].add(sequence, parts) {
		return
	}
	if next := (run{}); next.add(sequence, parts) {
		l.runs = append(l.runs, next)
	}
}

// worthRolling returns the runs that are long enough. Of an execution that has ended there are none: no turn reads it again.
func (l *load) worthRolling() (runs []run) {
	if n := len(l.segments); n == 0 || last(l.segments[n-1].Events).Kind.Terminal() {
		return nil
	}
	for _, r := range l.runs {
		if r.length() >= l.rolled {
			runs = append(runs, r)
		}
	}
	return runs
}

func last(events []history.Event) *history.Event { return &events[len(events)-1] }
