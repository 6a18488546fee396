package dynamo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Due dates are stored as days in UTC. Retention needs no finer resolution, and even months have few enough days to
// search all of them.
const (
	day       = 24 * time.Hour
	dayFormat = "2006-01-02"
)

// dueKey returns the key in the due index: the first day that does not start before the given time.
func dueKey(instanceID string, at time.Time) string {
	at = at.UTC()
	whole := at.Truncate(day)
	if whole.Before(at) {
		whole = whole.Add(day)
	}
	return whole.Format(dayFormat) + "#" + table.ShardOf(instanceID)
}

// isDue reports whether a key of the index is of today or of an earlier day.
func isDue(key string, now time.Time) bool {
	return len(key) > len(dayFormat) && key[:len(dayFormat)] <= now.UTC().Format(dayFormat)
}

// pastRetention returns the retention of past executions, for an instance with the given retention. A message that
// their turns consumed can be redelivered, or recovered from a dead-letter queue, and the history then determines the
// outputs to send again (R4, R13). A past execution is therefore not erased while a queue may hold such a message. An
// instance that has ended has sent all outputs (R9), and needs no such time.
func pastRetention(retention time.Duration) time.Duration {
	return max(retention, table.TombstoneLifetime)
}

// dutyRetention is the name of the stored position: the day before which nothing is due.
const dutyRetention = "retention"

const (
	// lookedAtAgain is the number of past days that are searched again although nothing was due: the index can be
	// stale, and so can the clock of a function that was frozen.
	lookedAtAgain = 2 * day
	// dueFirst is the time that the very first search goes back.
	dueFirst = 366 * day
	duePage  = 1000
)

// DueInstances searches the days up to today shard by shard, from the first day that may have entries left. It never
// searches a day again that was empty and is long enough ago.
func (p *Provider) DueInstances(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		today := p.now().UTC().Truncate(day)
		known, err := p.dueFrom(ctx, today, today.Add(-dueFirst))
		if err != nil {
			yield("", err)
			return
		}
		more, err := p.dueSince(ctx, known, today, yield)
		if err != nil && more {
			yield("", err)
		}
	}
}

// dueNoted is the number of days without a due instance after which the position is stored. The first search, which
// goes back for a year, may be interrupted.
const dueNoted = 30 * day

// dueSince yields the due instances from a day up to today, and stores the first day that must be searched again. more
// is false if the caller stopped.
func (p *Provider) dueSince(ctx context.Context, known, today time.Time, yield func(string, error) bool) (more bool, err error) {
	from := known
	empty := true
	note := func() error {
		if !from.After(known) {
			return nil
		}
		known = from
		return p.hubItems.PutPosition(ctx, dutyRetention, from.Format(dayFormat))
	}

	for at := known; !at.After(today); at = at.Add(day) {
		found, more, err := p.dueOn(ctx, at, yield)
		if !more || err != nil {
			return more, errors.Join(err, note())
		}
		if empty = empty && found == 0; empty && at.Before(today.Add(-lookedAtAgain)) {
			from = at.Add(day)
		}
		if from.Sub(known) >= dueNoted {
			if err := note(); err != nil {
				return true, err
			}
		}
	}
	return true, note()
}

// dueOn yields the due instances of a day. It returns their number, and whether the caller wants more.
func (p *Provider) dueOn(ctx context.Context, at time.Time, yield func(string, error) bool) (found int, more bool, err error) {
	heads := make([][]table.Item, table.Shards)
	queries := make([]*dynamodb.QueryInput, table.Shards)
	reads := make([]func() error, table.Shards)
	for shard := range table.Shards {
		queries[shard] = &dynamodb.QueryInput{
			IndexName: aws.String(table.IndexByDue), Limit: aws.Int32(duePage),
			KeyConditionExpression:    aws.String("due = :due"),
			ExpressionAttributeValues: table.Item{":due": table.Str(at.Format(dayFormat) + "#" + strconv.Itoa(shard))},
		}
		reads[shard] = func() (err error) {
			heads[shard], err = p.table.QueryPage(ctx, "", queries[shard])
			return err
		}
	}
	if err := awscall.Parallel(reads...); err != nil {
		return 0, true, err
	}

	for shard, page := range heads {
		for {
			for _, it := range page {
				found++
				if id := table.GetString(it, table.AttrPK); !yield(id[min(len(table.IDPrefix), len(id)):], nil) {
					return found, false, nil
				}
			}
			if queries[shard].ExclusiveStartKey == nil {
				break
			}
			if page, err = p.table.QueryPage(ctx, "", queries[shard]); err != nil {
				return found, true, err
			}
		}
	}
	return found, true, nil
}

// dueFrom returns the first day that may have due instances. It ignores a stored day in the future, which a wrong clock
// has set. Otherwise earlier days would not be searched for a long time.
func (p *Provider) dueFrom(ctx context.Context, today, otherwise time.Time) (time.Time, error) {
	var mark string
	if err := p.hubItems.ReadPosition(ctx, dutyRetention, &mark); err != nil {
		return otherwise, err
	}
	at, err := time.Parse(dayFormat, mark)
	if err != nil || at.After(today) {
		return otherwise, nil //nolint:nilerr // as for the first search
	}
	return at, nil
}

// ApplyRetention deletes an ended instance or past executions of a running one, if their retention has passed.
func (p *Provider) ApplyRetention(ctx context.Context, instanceID string) (provider.RetentionResult, error) {
	it, err := p.getInstance(ctx, instanceID, provider.Strong)
	if err != nil {
		return provider.RetentionResult{}, unlessNone(err)
	}
	switch {
	case isDeleting(it) || !isDue(table.GetString(it, table.AttrDue), p.now()):
		return provider.RetentionResult{}, nil // another process deletes it, or the index is behind
	case provider.RuntimeStatus(table.GetString(it, table.AttrStatus)).Terminal():
		if err := p.deleteOver(ctx, it); err != nil {
			return provider.RetentionResult{}, p.postpone(ctx, it,
				fmt.Errorf("dynamo: instance %q: delete after retention: %w", instanceID, err))
		}
		return provider.RetentionResult{Instance: true}, nil
	default:
		n, err := p.trim(ctx, it)
		if err != nil {
			err = p.postpone(ctx, it, fmt.Errorf("dynamo: instance %q: past executions: %w", instanceID, err))
		}
		return provider.RetentionResult{Executions: n}, err
	}
}

// postpone moves an instance whose deletion failed, and should not be repeated soon, to tomorrow, so that searches do
// not start at its due day each time. It returns the failure.
func (p *Provider) postpone(ctx context.Context, it table.Item, failure error) error {
	if e, ok := errors.AsType[*provider.Error](failure); ok && e.Retryable || ctx.Err() != nil {
		return failure
	}
	id := table.GetString(it, table.AttrPK)[len(table.IDPrefix):]
	tomorrow := table.Item{":again": table.Str(dueKey(id, p.now().Add(time.Second)))}
	return errors.Join(failure, p.setDue(ctx, it, "SET due = :again", tomorrow))
}
