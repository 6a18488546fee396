package sweep

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Three searches find instances that were started and had no turn. They alternate step by step, so that none of them
// starves:
//   - The near search reads the creation index once, up to the latest starts.
//   - The late search reads the index again an hour later. An instance can appear in the index late, and the clock of
//     its starter can be slow.
//   - The due search reads the attention index, which contains the instances that the other two searches have found.
//
// An instance that was found gets the attention "pending", which its first turn removes. The attention index sorts by
// the attribute updated, which is the time of the next check. A search therefore costs only as much as the starts since
// the last search and the due instances.

// lateDelay is the delay of the late search.
const lateDelay = time.Hour

// The number of instances per step. They are processed before the position of a search is stored.
const (
	scanPage      = 1000 // per shard, read by one query, which returns the pending ones
	markBatch     = 64   // per shard
	dueSearchPage = 256
)

// pendingSearch is one of the searches.
type pendingSearch interface {
	// next makes a step. over is true at the end of the search.
	next(ctx context.Context) (found []table.Item, over bool, err error)
	// commit stores that the found instances were processed.
	commit(ctx context.Context) error
	// markCondition returns the condition for marking an instance as pending, and the values in it.
	markCondition(it table.Item) (condition string, values table.Item)
}

// PendingInstances finds instances that were started and are still pending. Before it yields an instance, it stores the
// time at which the instance is found again. If the caller crashes, a later sweep wakes the instance after that time.
func (ss *Searches) PendingInstances(
	ctx context.Context, startedBefore time.Time,
) iter.Seq2[[]provider.Instance, error] {
	return func(yield func([]provider.Instance, error) bool) {
		searches := []pendingSearch{
			&creationSearch{
				searches: ss,
				position: "pending",
				from:     func(ctx context.Context) (string, error) { return ss.nearStart(ctx, startedBefore) },
				to:       table.FormatTime(startedBefore),
			},
			&creationSearch{
				searches: ss,
				position: "pending-late",
				to:       table.FormatTime(startedBefore.Add(-lateDelay)),
				late:     true,
			},
			&dueSearch{searches: ss},
		}
		for len(searches) > 0 {
			var rest []pendingSearch
			for _, l := range searches {
				over, more := ss.searchStep(ctx, l, startedBefore, yield)
				if !more {
					return
				}
				if !over {
					rest = append(rest, l)
				}
			}
			searches = rest
		}
	}
}

// nearStart returns the start of the near search. It is an hour before the stored position of an earlier release, or an
// hour before now without such a position. The late search starts with the oldest instance, so that it also finds
// instances that an earlier release has missed.
func (ss *Searches) nearStart(ctx context.Context, startedBefore time.Time) (string, error) {
	it, err := ss.table.Get(ctx, "", table.HubKey(table.SKSweep), provider.Eventual)
	if err != nil {
		return "", err
	}
	from := startedBefore
	if at, err := time.Parse(table.TimeFormat, table.GetString(it, "upTo")); err == nil && at.Before(from) {
		from = at
	}
	return table.FormatTime(from.Add(-lateDelay)), nil
}

// searchStep makes a step of a search, and yields the instances to wake. more is false if the caller stopped.
func (ss *Searches) searchStep(
	ctx context.Context, l pendingSearch, startedBefore time.Time, yield func([]provider.Instance, error) bool,
) (over, more bool) {
	found, over, err := l.next(ctx)
	if err != nil && !yield(nil, err) {
		return over, false
	}

	if wake, errs := ss.markAll(ctx, l, found, startedBefore); !yieldAll(wake, errs, yield) {
		return over, false
	}
	if ctx.Err() != nil { // it is unknown whether the instances were processed
		return true, true
	}
	if err := l.commit(ctx); err != nil && !yield(nil, err) {
		return over, false
	}
	return over, true
}

// markAll marks instances as pending, and returns the instances to wake now.
func (ss *Searches) markAll(
	ctx context.Context, l pendingSearch, found []table.Item, startedBefore time.Time,
) (wake []provider.Instance, errs []error) {
	var mu sync.Mutex
	_ = awscall.ForEachN(instances.MaxParallelReads, len(found), func(i int) error {
		in, due, err := ss.markPending(ctx, l, found[i], startedBefore)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			errs = append(errs, err)
		}
		if due {
			wake = append(wake, in)
		}
		return nil
	})
	return wake, errs
}

// markPending marks an instance as pending, unless it has had its first turn, or another process marks it. If the write
// fails, the instance is woken anyway if it was never woken before, because this search does not find it again.
func (ss *Searches) markPending(
	ctx context.Context, l pendingSearch, it table.Item, startedBefore time.Time,
) (in provider.Instance, due bool, err error) {
	if in, err = instances.Decode(it); err != nil {
		return in, false, err
	}

	next, due := nextCheck(&in, startedBefore, ss.now())
	condition, values := l.markCondition(it)
	values[":status"] = table.Str(string(provider.StatusPending))
	values[":attention"] = table.Str(table.AttentionPending)
	values[":next"] = table.Str(table.FormatTime(next))

	_, updated, err := ss.table.UpdateIf(ctx, in.InstanceID, &dynamodb.UpdateItemInput{
		Key:                       table.InstanceKey(in.InstanceID),
		UpdateExpression:          aws.String("SET attention = :attention, updated = :next"),
		ConditionExpression:       aws.String("#status = :status AND " + condition),
		ExpressionAttributeNames:  table.Names(table.AttrStatus),
		ExpressionAttributeValues: values,
	})
	if err != nil {
		_, again := l.(*dueSearch)
		return in, due && !again, err
	}
	return in, due && updated, nil
}

// nextCheck returns the time of the next check of a pending instance, and whether it is due for a wake now. It is due
// if its first turn was due before startedBefore. An instance with a delayed start is not checked before its start.
func nextCheck(in *provider.Instance, startedBefore, now time.Time) (next time.Time, due bool) {
	begins := instances.FirstTurnAt(in)
	if begins.After(startedBefore) {
		return begins.Add(max(now.Sub(startedBefore), 0)), false
	}
	return now.Add(min(max(now.Sub(begins), instances.MinWakeInterval), instances.MaxWakeInterval)), true
}

// creationSearch searches the creation index, all shards concurrently, each from its last position.
type creationSearch struct {
	searches *Searches
	position string
	// the start of a shard without a position; nil means its oldest instance
	from func(ctx context.Context) (string, error)
	to   string
	late bool // the near search has found most instances, which are then in the attention index

	at, kept [table.Shards]string // the positions of the shards: now, and as stored
	lists    []*shardScan         // nil before the first step
}

// shardScan holds the items of a shard that a scan has read.
type shardScan struct {
	in    *dynamodb.QueryInput
	items []table.Item
	upTo  string // the last key that was read; empty if there was none
	ended bool
}

func (s *creationSearch) next(ctx context.Context) (found []table.Item, over bool, err error) {
	if s.lists == nil {
		if err := s.begin(ctx); err != nil {
			return nil, true, err
		}
	}

	var reads []func() error
	for _, l := range s.lists {
		if len(l.items) > 0 || l.ended {
			continue
		}
		reads = append(reads, func() error {
			err := s.searches.scanOn(ctx, l, s.to)
			if s.late {
				l.items = slices.DeleteFunc(l.items, isMarked)
			}
			return err
		})
	}
	err = awscall.Parallel(reads...)

	over = true
	for i, l := range s.lists {
		n := min(len(l.items), markBatch)
		found = append(found, l.items[:n]...)
		if n > 0 {
			s.at[i] = table.GetString(l.items[n-1], table.AttrCreated)
		}
		if l.items = l.items[n:]; len(l.items) == 0 && l.upTo != "" {
			s.at[i] = l.upTo
		}
		over = over && l.ended && len(l.items) == 0
	}
	return found, over, err
}

func (s *creationSearch) begin(ctx context.Context) error {
	var kept []string // one position per shard
	if err := s.searches.positions.Read(ctx, s.position, &kept); err != nil {
		return err
	}

	first := ""
	if len(kept) != table.Shards && s.from != nil {
		var err error
		if first, err = s.from(ctx); err != nil {
			return err
		}
	}

	s.lists = make([]*shardScan, table.Shards)
	for i := range s.lists {
		s.at[i] = first
		if len(kept) == table.Shards {
			s.at[i] = s.searches.limitPosition(kept[i], s.to)
		}
		s.lists[i] = s.searches.newScan(i, s.at[i], s.to)
	}
	s.kept = s.at
	return nil
}

// maxClockSkew is the maximum difference between the clocks of two functions.
const maxClockSkew = time.Minute

// limitPosition returns a position unless it is in the future. A position in the future was set by a wrong clock, and
// instances that were started in between would never be found. In this case, the search starts an hour before now.
func (ss *Searches) limitPosition(mark, to string) string {
	at, err := time.Parse(table.TimeFormat, to)
	if err != nil || mark <= table.FormatTime(at.Add(maxClockSkew)) {
		return mark
	}
	ss.log.Warn("sweep position ahead of the clock, reading again", "event", logevent.SweepPositionAhead, "upTo", mark,
		"now", to)
	return table.FormatTime(at.Add(-lateDelay))
}

// newScan prepares a search for pending instances in a shard after a key.
func (ss *Searches) newScan(shard int, behind, to string) *shardScan {
	if behind >= to {
		return &shardScan{ended: true}
	}
	in := instances.ShardQuery(shard, behind+" ", to) // a space sorts before every continuation of a key
	in.Limit = aws.Int32(scanPage)
	in.FilterExpression = aws.String("#status = :pending")
	in.ExpressionAttributeNames["#status"] = table.AttrStatus
	in.ExpressionAttributeValues[":pending"] = table.Str(string(provider.StatusPending))
	return &shardScan{in: in}
}

// isMarked reports whether the sweeper has found a pending instance before. The last change of a new pending instance
// is its creation. The creation index does not contain the attention.
func isMarked(it table.Item) bool {
	return table.GetString(it, table.AttrUpdated) != "" &&
		!strings.HasPrefix(table.GetString(it, table.AttrCreated), table.GetString(it, table.AttrUpdated))
}

// scanOn reads the next items of a shard. After an error, the next search repeats the read.
func (ss *Searches) scanOn(ctx context.Context, l *shardScan, to string) error {
	out, err := ss.table.QueryOnce(ctx, "", l.in)
	if err != nil {
		l.ended = true
		return err
	}
	l.items = out.Items
	switch l.ended = l.in.ExclusiveStartKey == nil; {
	case !l.ended:
		l.upTo = table.GetString(l.in.ExclusiveStartKey, table.AttrCreated)
	case out.ScannedCount > 0 || l.upTo != "":
		l.upTo = to
	}
	return nil
}

// commit stores the positions of the shards if one has changed.
func (s *creationSearch) commit(ctx context.Context) error {
	if s.at == s.kept {
		return nil
	}
	err := s.searches.positions.Put(ctx, s.position, s.at[:])
	if err == nil {
		s.kept = s.at
	}
	return err
}

// markCondition excludes instances that have attention, because the attention index finds those.
func (s *creationSearch) markCondition(table.Item) (condition string, values table.Item) {
	return "attribute_not_exists(attention)", table.Item{}
}

// dueSearch finds instances that were found before and are due. A woken instance moves behind all due instances, so the
// search needs no stored position.
type dueSearch struct {
	searches *Searches
	in       *dynamodb.QueryInput // nil before the first step
}

func (d *dueSearch) next(ctx context.Context) (found []table.Item, over bool, err error) {
	if d.in == nil {
		d.in = instances.AttentionQueryUntil(table.AttentionPending, table.FormatTime(d.searches.now()))
		d.in.Limit = aws.Int32(dueSearchPage)
	}
	page, err := d.searches.table.QueryPage(ctx, "", d.in)
	if err != nil {
		return nil, true, err
	}
	found, errs := d.searches.instances.GetAll(ctx, page)
	return found, d.in.ExclusiveStartKey == nil, errors.Join(errs...)
}

func (d *dueSearch) commit(context.Context) error { return nil }

// markCondition makes sure that only one of two concurrent sweeps wakes the instance.
func (d *dueSearch) markCondition(it table.Item) (condition string, values table.Item) {
	return "attention = :attention AND updated = :seen", table.Item{":seen": it[table.AttrUpdated]}
}
