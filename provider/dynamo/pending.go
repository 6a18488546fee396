package dynamo

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
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Three searches find instances that were started and had no turn. They take turns step by step, so that none of them
// starves:
//   - near searches the creation index once, up to the latest starts.
//   - late searches it again an hour later, because an instance can appear in the index late, and its starter's clock
//     can be slow.
//   - again uses the attention index to find instances that the other two have found and that are due for another wake.
//
// An instance that was found gets the attention "pending" until its first turn removes it. Its attribute updated, by
// which the attention index sorts, is the time of the next check. A search therefore costs only as much as the starts
// since the last search and the due instances.

const (
	// lateBy is the delay of the late search.
	lateBy = time.Hour
	// wakeSoonest and wakeLatest limit the time between two wakes of an instance, which doubles each time. Without
	// them, a hub with a backlog would receive a message for each pending instance at each search, which would increase
	// the backlog.
	wakeSoonest = 2 * time.Minute
	wakeLatest  = time.Hour
)

// The number of instances per step. They are processed before the position of a search is stored.
const (
	scannedAtOnce = 1000 // per shard, read by one query, which returns the pending ones
	noticedAtOnce = 64   // per shard
	wokenAgain    = 256
)

// pendingLook is one of the searches.
type pendingLook interface {
	// next makes a step. over is true at the end of the search.
	next(ctx context.Context) (found []table.Item, over bool, err error)
	// keep stores that the found instances were processed.
	keep(ctx context.Context) error
	// notice returns the condition for marking an instance as pending, and the values in it.
	notice(it table.Item) (condition string, values table.Item)
}

// PendingInstances finds instances that were started and are still pending. Before it yields an instance, it stores the
// time at which the instance is found again: if the caller dies, a later sweep wakes the instance then.
func (p *Provider) PendingInstances(ctx context.Context, startedBefore time.Time) iter.Seq2[[]provider.Instance, error] {
	return func(yield func([]provider.Instance, error) bool) {
		looks := []pendingLook{
			&scan{p: p, duty: "pending", from: func(ctx context.Context) (string, error) { return p.nearFrom(ctx, startedBefore) }, to: table.FormatTime(startedBefore)},
			&scan{p: p, duty: "pending-late", to: table.FormatTime(startedBefore.Add(-lateBy)), late: true},
			&dueAgain{p: p},
		}
		for len(looks) > 0 {
			var rest []pendingLook
			for _, l := range looks {
				over, goOn := p.step(ctx, l, startedBefore, yield)
				if !goOn {
					return
				}
				if !over {
					rest = append(rest, l)
				}
			}
			looks = rest
		}
	}
}

// nearFrom returns the start of the near search: an hour before the stored position of an earlier release, if there is
// one, or otherwise an hour before now. The late search starts with the oldest instance, so that it also finds
// instances that an earlier release has missed.
func (p *Provider) nearFrom(ctx context.Context, startedBefore time.Time) (string, error) {
	it, err := p.table.Get(ctx, "", table.Item{table.AttrPK: table.Str(table.PKHub), table.AttrSK: table.Str(table.SKSweep)}, provider.Eventual)
	if err != nil {
		return "", err
	}
	from := startedBefore
	if at, err := time.Parse(table.TimeFormat, table.GetString(it, "upTo")); err == nil && at.Before(from) {
		from = at
	}
	return table.FormatTime(from.Add(-lateBy)), nil
}

// step makes a step of a search, and yields the instances to wake. goOn is false if the caller stopped.
func (p *Provider) step(ctx context.Context, l pendingLook, startedBefore time.Time, yield func([]provider.Instance, error) bool) (over, goOn bool) {
	found, over, err := l.next(ctx)
	if err != nil && !yield(nil, err) {
		return over, false
	}

	wake, errs := p.noticeAll(ctx, l, found, startedBefore)
	for _, err := range errs {
		if !yield(nil, err) {
			return over, false
		}
	}
	if len(wake) > 0 && !yield(wake, nil) {
		return over, false
	}
	if ctx.Err() != nil { // it is unknown which instances were processed
		return true, true
	}
	if err := l.keep(ctx); err != nil && !yield(nil, err) {
		return over, false
	}
	return over, true
}

// noticeAll marks instances as pending, and returns those to wake now.
func (p *Provider) noticeAll(ctx context.Context, l pendingLook, found []table.Item, startedBefore time.Time) (wake []provider.Instance, errs []error) {
	var mu sync.Mutex
	writes := make([]func() error, len(found))
	for i, it := range found {
		writes[i] = func() error {
			in, due, err := p.noticeOne(ctx, l, it, startedBefore)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
			}
			if due {
				wake = append(wake, in)
			}
			return nil
		}
	}
	_ = awscall.ParallelN(instancesAtOnce, writes)
	return wake, errs
}

// noticeOne marks an instance as pending, unless it has had its turn, or another process marks it. If the write fails,
// the instance is woken anyway if it was never woken before, because this search does not find it again.
func (p *Provider) noticeOne(ctx context.Context, l pendingLook, it table.Item, startedBefore time.Time) (in provider.Instance, due bool, err error) {
	if in, err = decodeInstance(it); err != nil {
		return in, false, err
	}

	next, due := nextLook(&in, startedBefore, p.now())
	condition, values := l.notice(it)
	values[":status"] = table.Str(string(provider.StatusPending))
	values[":attention"] = table.Str(table.AttentionPending)
	values[":next"] = table.Str(table.FormatTime(next))

	_, noticed, err := p.table.UpdateIf(ctx, in.InstanceID, &dynamodb.UpdateItemInput{
		Key:              table.InstanceKey(in.InstanceID),
		UpdateExpression: aws.String("SET attention = :attention, updated = :next"), ConditionExpression: aws.String("#status = :status AND " + condition),
		ExpressionAttributeNames: map[string]string{table.NameStatus: table.AttrStatus}, ExpressionAttributeValues: values,
	})
	if err != nil {
		_, again := l.(*dueAgain)
		return in, due && !again, err
	}
	return in, due && noticed, nil
}

// nextLook returns the time of the next check of a pending instance, and whether it is due for a wake now, because its
// first turn was due before startedBefore. An instance with a delayed start is not checked before its start.
func nextLook(in *provider.Instance, startedBefore, now time.Time) (next time.Time, due bool) {
	begins := in.CreatedAt
	if in.StartAt.After(begins) {
		begins = in.StartAt
	}
	if begins.After(startedBefore) {
		return begins.Add(max(now.Sub(startedBefore), 0)), false
	}
	return now.Add(min(max(now.Sub(begins), wakeSoonest), wakeLatest)), true
}

// scan searches the creation index, all shards concurrently, each from its last position.
type scan struct {
	p    *Provider
	duty string
	// the start of a shard without a position; nil means its oldest instance
	from func(ctx context.Context) (string, error)
	to   string
	late bool // the near search has found nearly all, and the attention index finds those again

	at, kept [table.Shards]string // the positions of the shards: now, and as stored
	lists    []*scanned           // nil before the first step
}

// scanned holds the items of a shard that a scan has read.
type scanned struct {
	in    *dynamodb.QueryInput
	items []table.Item
	upTo  string // the last key that was read; empty if there was none
	over  bool
}

func (s *scan) next(ctx context.Context) (found []table.Item, over bool, err error) {
	if s.lists == nil {
		if err := s.begin(ctx); err != nil {
			return nil, true, err
		}
	}

	var reads []func() error
	for _, l := range s.lists {
		if len(l.items) > 0 || l.over {
			continue
		}
		reads = append(reads, func() error {
			err := s.p.scanOn(ctx, l, s.to)
			if s.late {
				l.items = slices.DeleteFunc(l.items, isNoticed)
			}
			return err
		})
	}
	err = awscall.Parallel(reads...)

	over = true
	for i, l := range s.lists {
		n := min(len(l.items), noticedAtOnce)
		found = append(found, l.items[:n]...)
		if n > 0 {
			s.at[i] = table.GetString(l.items[n-1], table.AttrCreated)
		}
		if l.items = l.items[n:]; len(l.items) == 0 && l.upTo != "" {
			s.at[i] = l.upTo
		}
		over = over && l.over && len(l.items) == 0
	}
	return found, over, err
}

func (s *scan) begin(ctx context.Context) error {
	var kept []string // one position per shard
	if err := s.p.hubItems.ReadPosition(ctx, s.duty, &kept); err != nil {
		return err
	}

	first := ""
	if len(kept) != table.Shards && s.from != nil {
		var err error
		if first, err = s.from(ctx); err != nil {
			return err
		}
	}

	s.lists = make([]*scanned, table.Shards)
	for i := range s.lists {
		s.at[i] = first
		if len(kept) == table.Shards {
			s.at[i] = s.p.notAhead(kept[i], s.to)
		}
		s.lists[i] = s.p.newScan(i, s.at[i], s.to)
	}
	s.kept = s.at
	return nil
}

// aheadBy is the maximum difference between the clocks of two functions.
const aheadBy = time.Minute

// notAhead returns a position unless it is in the future. A wrong clock has then set it, and instances that were
// started in between would never be found. The search then starts an hour back.
func (p *Provider) notAhead(mark, to string) string {
	at, err := time.Parse(table.TimeFormat, to)
	if err != nil || mark <= table.FormatTime(at.Add(aheadBy)) {
		return mark
	}
	p.log.Warn("sweep position ahead of the clock, reading again", "event", logevent.SweepPositionAhead, "upTo", mark,
		"now", to)
	return table.FormatTime(at.Add(-lateBy))
}

// newScan prepares a search for pending instances in a shard after a key.
func (p *Provider) newScan(shard int, behind, to string) *scanned {
	if behind >= to {
		return &scanned{over: true}
	}
	in := p.shardQuery(shard, behind+" ", to) // a space sorts before every continuation of a key
	in.Limit = aws.Int32(scannedAtOnce)
	in.FilterExpression = aws.String("#status = :pending")
	in.ExpressionAttributeNames[table.NameStatus] = table.AttrStatus
	in.ExpressionAttributeValues[":pending"] = table.Str(string(provider.StatusPending))
	return &scanned{in: in}
}

// isNoticed reports whether the sweeper has found a pending instance. Before that, its last change is its creation.
// This index does not contain the attention.
func isNoticed(it table.Item) bool {
	return table.GetString(it, table.AttrUpdated) != "" && !strings.HasPrefix(table.GetString(it, table.AttrCreated), table.GetString(it, table.AttrUpdated))
}

// readOn reads the next items of a shard. After an error the next search continues with the shard.
func (p *Provider) scanOn(ctx context.Context, l *scanned, to string) error {
	out, err := p.table.QueryOnce(ctx, "", l.in)
	if err != nil {
		l.over = true
		return err
	}
	l.items = out.Items
	switch l.over = l.in.ExclusiveStartKey == nil; {
	case !l.over:
		l.upTo = table.GetString(l.in.ExclusiveStartKey, table.AttrCreated)
	case out.ScannedCount > 0 || l.upTo != "":
		l.upTo = to
	}
	return nil
}

// keep stores the positions of the shards if one has changed.
func (s *scan) keep(ctx context.Context) error {
	if s.at == s.kept {
		return nil
	}
	err := s.p.hubItems.PutPosition(ctx, s.duty, s.at[:])
	if err == nil {
		s.kept = s.at
	}
	return err
}

// notice excludes instances that have attention, because the attention index finds those.
func (s *scan) notice(table.Item) (condition string, values table.Item) {
	return "attribute_not_exists(attention)", table.Item{}
}

// dueAgain finds instances that were found before and are due. A woken instance moves behind all due ones, so the
// search needs no stored position.
type dueAgain struct {
	p  *Provider
	in *dynamodb.QueryInput // nil before the first step
}

func (d *dueAgain) next(ctx context.Context) (found []table.Item, over bool, err error) {
	if d.in == nil {
		d.in = d.p.attentionQuery(table.AttentionPending)
		d.in.KeyConditionExpression = aws.String("attention = :kind AND updated <= :now")
		d.in.ExpressionAttributeValues[":now"] = table.Str(table.FormatTime(d.p.now()))
		d.in.Limit = aws.Int32(wokenAgain)
	}
	page, err := d.p.table.QueryPage(ctx, "", d.in)
	if err != nil {
		return nil, true, err
	}
	found, errs := d.p.getAll(ctx, page)
	return found, d.in.ExclusiveStartKey == nil, errors.Join(errs...)
}

func (d *dueAgain) keep(context.Context) error { return nil }

// notice makes sure that only one of two concurrent sweeps wakes the instance.
func (d *dueAgain) notice(it table.Item) (condition string, values table.Item) {
	return "attention = :attention AND updated = :seen", table.Item{":seen": it[table.AttrUpdated]}
}
