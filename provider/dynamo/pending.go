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
)

// Instances that were started and had no turn are found by three searches, which take turns step by step, so that none
// starves another:
//
//   - near goes through the index by creation once, up to what was started a moment ago;
//   - late goes through it once more, an hour behind: an instance may reach the index late, and its starter's clock may be slow;
//   - again finds by the index by attention what the other two have noticed and what is due to be woken once more.
//
// An instance that is noticed gets the attention "pending", until its first turn removes it; updated, by which that
// index sorts, is when it is to be looked at next. A search therefore costs only what was started since the last one
// and what is due.

const (
	// lateBy is how far the late search is behind.
	lateBy = time.Hour
	// wakeSoonest and wakeLatest bound the time between two wakes of an instance, which otherwise doubles. A hub that
	// is behind must not receive a message for each pending instance at each search: the backlog would feed itself.
	wakeSoonest = 2 * time.Minute
	wakeLatest  = time.Hour
)

// The instances of one step: they are dealt with before the position of a search is stored.
const (
	scannedAtOnce = 1000 // of a shard, read by one query, which returns those that are pending
	noticedAtOnce = 64   // of a shard
	wokenAgain    = 256
)

// pendingLook is one of the searches.
type pendingLook interface {
	// next makes a step. over reports that there is no more.
	next(ctx context.Context) (found []item, over bool, err error)
	// keep stores that what was found is dealt with.
	keep(ctx context.Context) error
	// notice returns the condition on which an instance may be noticed, and the values in it.
	notice(it item) (condition string, values item)
}

// PendingInstances finds instances that were started and are still pending. Before it yields an instance, it stores the
// time at which the instance is found again: if the caller dies, a later sweep wakes the instance then.
func (p *Provider) PendingInstances(ctx context.Context, startedBefore time.Time) iter.Seq2[[]provider.Instance, error] {
	return func(yield func([]provider.Instance, error) bool) {
		looks := []pendingLook{
			&scan{p: p, duty: "pending", from: func(ctx context.Context) (string, error) { return p.nearFrom(ctx, startedBefore) }, to: formatTime(startedBefore)},
			&scan{p: p, duty: "pending-late", to: formatTime(startedBefore.Add(-lateBy)), late: true},
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

// nearFrom returns where the near search begins: an hour before the mark of an earlier release, if there is one, or an
// hour before now. The late search begins with the oldest instance, so that nothing that an earlier release has lost
// stays lost.
func (p *Provider) nearFrom(ctx context.Context, startedBefore time.Time) (string, error) {
	it, err := p.getWatchItem(ctx, item{attrPK: str(pkHub), attrSK: str(skWatch)})
	if err != nil {
		return "", err
	}
	from := startedBefore
	if at, err := time.Parse(timeFormat, getString(it, "upTo")); err == nil && at.Before(from) {
		from = at
	}
	return formatTime(from.Add(-lateBy)), nil
}

// step makes a step of a search, and yields what is to be woken. goOn is false when the caller wants no more.
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
	if ctx.Err() != nil { // what was dealt with is not known
		return true, true
	}
	if err := l.keep(ctx); err != nil && !yield(nil, err) {
		return over, false
	}
	return over, true
}

// noticeAll notices instances, and returns those that are to be woken now.
func (p *Provider) noticeAll(ctx context.Context, l pendingLook, found []item, startedBefore time.Time) (wake []provider.Instance, errs []error) {
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
	_ = atOnce(instancesAtOnce, writes)
	return wake, errs
}

// noticeOne notices an instance, unless it has had its turn, or another process notices it. Where noticing fails, the
// instance is woken anyway if it was never woken before, because this search does not return to it.
func (p *Provider) noticeOne(ctx context.Context, l pendingLook, it item, startedBefore time.Time) (in provider.Instance, due bool, err error) {
	if in, err = decodeInstance(it); err != nil {
		return in, false, err
	}

	next, due := nextLook(&in, startedBefore, p.now())
	condition, values := l.notice(it)
	values[":status"] = str(string(provider.StatusPending))
	values[":attention"] = str(attentionPending)
	values[":next"] = str(formatTime(next))

	noticed, err := p.updateIf(ctx, in.InstanceID, &dynamodb.UpdateItemInput{
		TableName: &p.hub.Table, Key: instanceKey(in.InstanceID),
		UpdateExpression: aws.String("SET attention = :attention, updated = :next"), ConditionExpression: aws.String("#status = :status AND " + condition),
		ExpressionAttributeNames: map[string]string{nameStatus: attrStatus}, ExpressionAttributeValues: values,
	})
	if err != nil {
		_, again := l.(*dueAgain)
		return in, due && !again, err
	}
	return in, due && noticed, nil
}

// nextLook returns when a pending instance is to be looked at next, and whether it is due to be woken now, because it
// should have had its turn before startedBefore. An instance that is to begin later is left alone until then.
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

// scan goes through the index by creation, all shards concurrently, each from where it stopped.
type scan struct {
	p    *Provider
	duty string
	from func(ctx context.Context) (string, error) // where a shard begins that has no mark; nil: with its oldest instance
	to   string
	late bool // the near search has noticed nearly all: those come again by the index by attention

	at, kept [shards]string // the keys up to which the shards are dealt with: now, and as stored
	lists    []*scanned     // nil: not begun
}

// scanned holds what a scan has read of a shard.
type scanned struct {
	in    *dynamodb.QueryInput
	items []item
	upTo  string // the key up to which the shard was read; empty: it had nothing
	over  bool
}

func (s *scan) next(ctx context.Context) (found []item, over bool, err error) {
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
	err = together(reads...)

	over = true
	for i, l := range s.lists {
		n := min(len(l.items), noticedAtOnce)
		found = append(found, l.items[:n]...)
		if n > 0 {
			s.at[i] = getString(l.items[n-1], attrCreated)
		}
		if l.items = l.items[n:]; len(l.items) == 0 && l.upTo != "" {
			s.at[i] = l.upTo
		}
		over = over && l.over && len(l.items) == 0
	}
	return found, over, err
}

func (s *scan) begin(ctx context.Context) error {
	var kept []string // as many as there were shards
	if err := s.p.readMark(ctx, s.duty, &kept); err != nil {
		return err
	}

	first := ""
	if len(kept) != shards && s.from != nil {
		var err error
		if first, err = s.from(ctx); err != nil {
			return err
		}
	}

	s.lists = make([]*scanned, shards)
	for i := range s.lists {
		s.at[i] = first
		if len(kept) == shards {
			s.at[i] = s.p.notAhead(kept[i], s.to)
		}
		s.lists[i] = s.p.newScan(i, s.at[i], s.to)
	}
	s.kept = s.at
	return nil
}

// aheadBy is how much the clocks of two functions may differ.
const aheadBy = time.Minute

// notAhead returns a mark, unless it lies in the future: a wrong clock has then moved it there, and what was started in
// between would never be looked at. The search then begins an hour back.
func (p *Provider) notAhead(mark, to string) string {
	at, err := time.Parse(timeFormat, to)
	if err != nil || mark <= formatTime(at.Add(aheadBy)) {
		return mark
	}
	p.log.Warn("sweep position ahead of the clock, reading again", "event", logevent.SweepPositionAhead, "upTo", mark,
		"now", to)
	return formatTime(at.Add(-lateBy))
}

// newScan prepares to read what is pending in a shard behind a key.
func (p *Provider) newScan(shard int, behind, to string) *scanned {
	if behind >= to {
		return &scanned{over: true}
	}
	in := p.shardQuery(shard, behind+" ", to) // a blank sorts before every continuation of a key
	in.Limit = aws.Int32(scannedAtOnce)
	in.FilterExpression = aws.String("#status = :pending")
	in.ExpressionAttributeNames[nameStatus] = attrStatus
	in.ExpressionAttributeValues[":pending"] = str(string(provider.StatusPending))
	return &scanned{in: in}
}

// isNoticed reports whether the watch has noticed a pending instance. Until then its last change is its creation. This
// index does not hold the attention.
func isNoticed(it item) bool {
	return getString(it, attrUpdated) != "" && !strings.HasPrefix(getString(it, attrCreated), getString(it, attrUpdated))
}

// scanOn reads on in a shard. After an error the shard is left to the next search.
func (p *Provider) scanOn(ctx context.Context, l *scanned, to string) error {
	out, err := p.queryOnce(ctx, "", l.in)
	if err != nil {
		l.over = true
		return err
	}
	l.items = out.Items
	switch l.over = l.in.ExclusiveStartKey == nil; {
	case !l.over:
		l.upTo = getString(l.in.ExclusiveStartKey, attrCreated)
	case out.ScannedCount > 0 || l.upTo != "":
		l.upTo = to
	}
	return nil
}

// keep stores how far the shards have come, if any has.
func (s *scan) keep(ctx context.Context) error {
	if s.at == s.kept {
		return nil
	}
	err := s.p.putMark(ctx, s.duty, s.at[:])
	if err == nil {
		s.kept = s.at
	}
	return err
}

// notice excludes instances that have attention already, which the index by attention finds.
func (s *scan) notice(item) (condition string, values item) {
	return "attribute_not_exists(attention)", item{}
}

// dueAgain finds what was noticed before and is due. What is woken moves behind all that is due, so the index serves as
// its own mark.
type dueAgain struct {
	p  *Provider
	in *dynamodb.QueryInput // nil: not begun
}

func (d *dueAgain) next(ctx context.Context) (found []item, over bool, err error) {
	if d.in == nil {
		d.in = d.p.attentionQuery(attentionPending)
		d.in.KeyConditionExpression = aws.String("attention = :kind AND updated <= :now")
		d.in.ExpressionAttributeValues[":now"] = str(formatTime(d.p.now()))
		d.in.Limit = aws.Int32(wokenAgain)
	}
	page, err := d.p.queryPage(ctx, "", d.in)
	if err != nil {
		return nil, true, err
	}
	found, errs := d.p.getAll(ctx, page)
	return found, d.in.ExclusiveStartKey == nil, errors.Join(errs...)
}

func (d *dueAgain) keep(context.Context) error { return nil }

// notice makes sure that of two concurrent watches only one wakes the instance.
func (d *dueAgain) notice(it item) (condition string, values item) {
	return "attention = :attention AND updated = :seen", item{":seen": it[attrUpdated]}
}
