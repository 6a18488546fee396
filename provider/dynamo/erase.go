package dynamo

import (
	"context"
	"strings"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// erase replaces an execution's segments by stubs and returns the previous execution. A segment's key is never free, so
// a process that still holds a turn for it gets a conflict, as always (I8). The cancel record stays for workers that
// run or have not yet received activities of the execution. Erasing is idempotent and skips completed steps. If the
// instance is not deleted, the stub of the start names the next execution.
func (p *Provider) erase(ctx context.Context, instanceID, executionID, next string, progress *progress) (previous string, err error) {
	// before the items are listed, because a late worker reads the mark after its write
	if err := p.cancels.MarkDeleted(ctx, instanceID, executionID); err != nil {
		return "", err
	}
	start, err := p.table.GetExecutionItem(ctx, executionID, table.SegmentSK(0, 0))
	if err != nil {
		return "", err
	}
	previous = table.GetString(start, table.AttrPrevious)
	if !table.IsStub(start) {
		stub := segments.Stub(executionID, 0, p.now())
		switch {
		case next != "":
			stub[table.AttrNext] = table.Str(next)
		case previous != "":
			stub[table.AttrPrevious] = table.Str(previous)
		}
		if err := p.table.PutItem(ctx, instanceID, stub); err != nil {
			return "", err
		}
	}
	if err := p.eraseRest(ctx, instanceID, executionID, progress); err != nil {
		return previous, err
	}
	return previous, p.payloads.DeleteAll(ctx, executionID, progress.goesOn)
}

// eraseRest erases everything after the start page by page, and reads only keys.
func (p *Provider) eraseRest(ctx context.Context, instanceID, executionID string, progress *progress) error {
	due := int64(1) // the next segment that needs a stub
	for page, err := range p.table.Query(ctx, instanceID, segments.KeysOnly(segments.AllItemsQuery(executionID))) {
		if err != nil {
			return err
		}
		var writes []func() error
		for _, it := range page {
			writes = append(writes, p.erasures(ctx, instanceID, executionID, it, &due)...)
		}
		err := awscall.Parallel(writes...)
		if err == nil {
			err = progress.goesOn(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// erasures returns the writes that erase an item: stubs for a segment and for missing segments before it in a damaged
// history, and a deletion for all other items, such as activity records, crash markers and further parts. The cancel
// record gets a TTL instead.
func (p *Provider) erasures(ctx context.Context, instanceID, executionID string, it table.Item, due *int64) (writes []func() error) {
	sk := table.GetString(it, table.AttrSK)
	switch {
	case table.IsCancelMark(sk), table.IsCancelDecision(sk) && it[table.AttrTTL] != nil:
		return nil
	case table.IsCancelDecision(sk):
		return []func() error{func() error { return p.cancels.Expire(ctx, instanceID, executionID, sk) }}
	}
	sequence, part, err := table.ParseSegmentSK(sk)
	if !strings.HasPrefix(sk, table.SKSegments) || err != nil || part > 0 {
		return []func() error{func() error { return p.table.DeleteItem(ctx, instanceID, table.ExecutionKey(executionID, sk)) }}
	}
	for ; *due <= sequence; *due++ {
		if *due < sequence || !table.IsStub(it) {
			stub := segments.Stub(executionID, *due, p.now())
			writes = append(writes, func() error { return p.table.PutItem(ctx, instanceID, stub) })
		}
	}
	return writes
}

// remains is a summary of the items with an execution's key.
type remains struct {
	last     int64          // the number of the last segment
	stubs    map[int64]bool // the segments that are stubs already
	others   []string       // sort keys of items to delete: parts after the first one, activity records
	decided  []string       // sort keys of turns' cancel decisions
	previous string
	// watermark is the position of the last consumed message.
	watermark provider.Position
}

func remainsOf(items []table.Item) remains {
	r := remains{stubs: map[int64]bool{}}
	for _, it := range items {
		sk := table.GetString(it, table.AttrSK)
		if table.IsCancelDecision(sk) {
			r.decided = append(r.decided, sk)
		}
		if table.IsCancelMark(sk) || table.IsCancelDecision(sk) {
			continue
		}
		sequence, part, err := table.ParseSegmentSK(sk)
		if !strings.HasPrefix(sk, table.SKSegments) || err != nil {
			r.others = append(r.others, sk)
			continue
		}
		r.last = max(r.last, sequence)
		if part > 0 {
			r.others = append(r.others, sk)
			continue
		}
		r.stubs[sequence] = table.IsStub(it)
		if sequence == 0 {
			r.previous = table.GetString(it, table.AttrPrevious)
		}
		if wm := table.GetString(it, table.AttrWM); wm != "" {
			r.watermark = provider.Position{Inbox: table.GetString(it, table.AttrInbox), Sequence: wm}
		}
	}
	return r
}
