package sweep

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// positionRetention is the name of the stored position: the day before which nothing is due.
const positionRetention = "retention"

const (
	// searchedAgain is the number of past days that are searched again although nothing was due. The index and the
	// clock of a frozen function can be stale.
	searchedAgain = 2 * instances.Day
	// dueFirst is the time that the first search of a hub covers.
	dueFirst = 366 * instances.Day
	duePage  = 1000
)

// DueInstances searches the days up to today shard by shard, starting with the first day that may have entries. It does
// not repeat the search of an empty day that is more than searchedAgain ago.
func (ss *Searches) DueInstances(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		today := ss.now().UTC().Truncate(instances.Day)
		known, err := ss.dueFrom(ctx, today, today.Add(-dueFirst))
		if err != nil {
			yield("", err)
			return
		}
		more, err := ss.dueSince(ctx, known, today, yield)
		if err != nil && more {
			yield("", err)
		}
	}
}

// duePositionInterval is the number of days without a due instance after which the position is stored. The first
// search, which covers a year, may be interrupted.
const duePositionInterval = 30 * instances.Day

// dueSince yields the due instances from a day up to today, and stores the first day that must be searched again. more
// is false if the caller stopped.
func (ss *Searches) dueSince(
	ctx context.Context, known, today time.Time, yield func(string, error) bool,
) (more bool, err error) {
	from := known
	empty := true
	note := func() error {
		if !from.After(known) {
			return nil
		}
		known = from
		return ss.positions.Put(ctx, positionRetention, from.Format(instances.DayFormat))
	}

	for at := known; !at.After(today); at = at.Add(instances.Day) {
		found, more, err := ss.dueOn(ctx, at, yield)
		if !more || err != nil {
			return more, errors.Join(err, note())
		}
		if empty = empty && found == 0; empty && at.Before(today.Add(-searchedAgain)) {
			from = at.Add(instances.Day)
		}
		if from.Sub(known) >= duePositionInterval {
			if err := note(); err != nil {
				return true, err
			}
		}
	}
	return true, note()
}

// dueOn yields the due instances of a day. It returns their number, and whether the caller has not stopped.
func (ss *Searches) dueOn(
	ctx context.Context, at time.Time, yield func(string, error) bool,
) (found int, more bool, err error) {
	heads := make([][]table.Item, table.Shards)
	queries := make([]*dynamodb.QueryInput, table.Shards)
	err = awscall.ForEach(table.Shards, func(shard int) (err error) {
		queries[shard] = &dynamodb.QueryInput{
			IndexName:              aws.String(table.IndexByDue),
			Limit:                  aws.Int32(duePage),
			KeyConditionExpression: aws.String("due = :due"),
			ExpressionAttributeValues: table.Item{
				":due": table.Str(at.Format(instances.DayFormat) + "#" + strconv.Itoa(shard)),
			},
		}
		heads[shard], err = ss.table.QueryPage(ctx, "", queries[shard])
		return err
	})
	if err != nil {
		return 0, true, err
	}

	for shard, page := range heads {
		for {
			for _, it := range page {
				found++
				if !yield(table.InstanceIDOf(it), nil) {
					return found, false, nil
				}
			}
			if queries[shard].ExclusiveStartKey == nil {
				break
			}
			if page, err = ss.table.QueryPage(ctx, "", queries[shard]); err != nil {
				return found, true, err
			}
		}
	}
	return found, true, nil
}

// dueFrom returns the first day that may have due instances. It ignores a stored day in the future, which a wrong clock
// has set. Otherwise, earlier days would not be searched for a long time.
func (ss *Searches) dueFrom(ctx context.Context, today, otherwise time.Time) (time.Time, error) {
	var mark string
	if err := ss.positions.Read(ctx, positionRetention, &mark); err != nil {
		return otherwise, err
	}
	at, err := time.Parse(instances.DayFormat, mark)
	if err != nil || at.After(today) {
		return otherwise, nil //nolint:nilerr // as for the first search
	}
	return at, nil
}
