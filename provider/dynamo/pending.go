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

	"github.com/perdure/perdure/provider"
)

// What was started and never picked up is found in three ways, which take turns, a step at a time, so that none starves another:
//
//   - near goes through the index by creation once, up to what was started a moment ago;
//   - late does so once more, an hour behind: the index may have heard of an instance late, and the clock of whoever started it may be slow;
//   - again finds by the index by attention what the other two have noticed and is due to be woken once more.
//
// An instance that is noticed gets the attention "pending", until its first turn takes that away; updated, by which that index sorts,
// is when it is to be looked at next. So a look costs what was started since the one before, and what is due, and nothing else.

const (
	// lateBy is how far behind the second look at an instance is.
	lateBy = time.Hour
	// wakeSoonest and wakeLatest bound the time between two wakes of an instance, which otherwise doubles. A hub that is behind must not be
	// sent a message for each pending instance at each look: the backlog would feed itself.
	wakeSoonest = 2 * time.Minute
	wakeLatest  = time.Hour
)

// Steps of a look, in instances: what is done with before it is noted how far the look has come.
const (
	scannedAtOnce = 1000 // of a shard, by one query, of which those come back that are pending
	noticedAtOnce = 64   // of a shard
	wokenAgain    = 256
)

// pendingLook is one of the ways.
type pendingLook interface {
	// next makes a step. It ends the look when there is no more.
	next(ctx context.Context) (found []item, over bool, err error)
	// keep notes that what was found is done with.
	keep(ctx context.Context) error
	// notice is the condition on which an instance may be noticed, with the values in it.
	notice(it item) (condition string, values item)
}

// PendingInstances goes through what was started and is still pending. Each instance that it yields is noticed before, with the time at which
// it is yielded next: should the caller die here, it is woken then.
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

// nearFrom is where the first look begins: an hour before the mark of a release before, if there is one, or before now. The late look
// begins with all there is, so that nothing that was lost in a release before stays so.
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

// step makes a step of a look, and yields what is to be woken. goOn is false when the caller has had enough.
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
	if ctx.Err() != nil { // what was done with is not known
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

// noticeOne notices an instance, unless it has had its turn, or somebody else notices it. Where that fails it is woken all the same if
// nobody has woken it yet: this look does not come by again.
func (p *Provider) noticeOne(ctx context.Context, l pendingLook, it item, startedBefore time.Time) (in provider.Instance, due bool, err error) {
	if in, err = decodeInstance(it); err != nil {
		return in, false, err
	}
	next, due := nextLook(&in, startedBefore, p.now())
	condition, values := l.notice(it)
	values[":status"], values[":attention"], values[":next"] = str(string(provider.StatusPending)), str(attentionPending), str(formatTime(next))
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

// nextLook is when a pending instance is to be looked at next, and whether it is due to be woken now: it should have had its turn
// before startedBefore. One that is to begin later is left alone until then.
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

// scan goes through the index by creation, all shards side by side, each from where it stopped.
type scan struct {
	p    *Provider
	duty string
	from func(ctx context.Context) (string, error) // where a shard begins that has no mark; nil: with all there is
	to   string
	late bool // nearly all has been noticed by the first look: it comes again by the index by attention

	at, kept [shards]string // the keys up to which the shards are done with
	lists    []*scanned     // nil: not begun
}

// scanned is what a scan has read of a shard.
type scanned struct {
	in    *dynamodb.QueryInput
	items []item
	upTo  string // where the shard was read up to; empty: there was nothing
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

// aheadBy is by how much the clocks of two functions may differ.
const aheadBy = time.Minute

// notAhead is a mark, unless it is of a time that has not come: then a clock was wrong that has moved it there, and what was started since
// then would never be looked at. The look begins an hour back.
func (p *Provider) notAhead(mark, to string) string {
	at, err := time.Parse(timeFormat, to)
	if err != nil || mark <= formatTime(at.Add(aheadBy)) {
		return mark
	}
	p.log.Warn("the watch has looked ahead of time, as by a clock that was wrong: it looks once more", "upTo", mark, "now", to)
	return formatTime(at.Add(-lateBy))
}

// newScan reads what is pending in a shard behind a key.
func (p *Provider) newScan(shard int, behind, to string) *scanned {
	if behind >= to {
		return &scanned{over: true}
	}
	in := p.shardQuery(shard, behind+" ", to) // a blank sorts before all that a key can go on with
	in.Limit = aws.Int32(scannedAtOnce)
	in.FilterExpression = aws.String("#status = :pending")
	in.ExpressionAttributeNames[nameStatus] = attrStatus
	in.ExpressionAttributeValues[":pending"] = str(string(provider.StatusPending))
	return &scanned{in: in}
}

// isNoticed reports whether a pending instance is as the watch has left it: until then it was last changed when it was created. This index does not hold the attention.
func isNoticed(it item) bool {
	return getString(it, attrUpdated) != "" && !strings.HasPrefix(getString(it, attrCreated), getString(it, attrUpdated))
}

// scanOn reads on in a shard. After an error it is left to the next look.
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

// keep notes how far the shards have come, if any has.
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

// notice: whoever has attention already is looked after by the index that is for it.
func (s *scan) notice(item) (condition string, values item) {
	return "attribute_not_exists(attention)", item{}
}

// dueAgain finds what was noticed before and is due. What is woken moves behind all that is due, so the index is its own mark.
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

// notice: of two watches that look at once one wakes it.
func (d *dueAgain) notice(it item) (condition string, values item) {
	return "attention = :attention AND updated = :seen", item{":seen": it[attrUpdated]}
}
