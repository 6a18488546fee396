// Package retries makes the next attempts of activities current, sends them, and stores pending attempts with their
// timers. All writes require that the caller's head is the head of the history.
package retries

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/activityrecords"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/lru"
	"github.com/perdure/perdure/provider/dynamo/internal/outbox"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/dynamo/internal/workqueue"
)

// Stores are the stores that Retries reads and writes.
type Stores struct {
	Table      *table.Table
	Queue      *sqsqueue.Queues
	WorkQueues *workqueue.WorkQueues
	Attempts   *activityrecords.Store
	WorkItems  *segments.WorkItems
	Outbox     *outbox.Outbox
}

// Retries retries the activities of a hub. It is safe for concurrent use.
type Retries struct {
	Stores

	now func() time.Time
	// sent caches the attempts that were sent.
	sent *lru.Cache[struct{}]
}

// New returns the retries of a hub.
func New(s Stores, now func() time.Time) *Retries {
	return &Retries{Stores: s, now: now, sent: lru.New[struct{}](maxCachedSends)}
}

// request is one call of RetryActivities.
type request struct {
	retries *Retries
	*provider.RetryRequest

	verified  bool
	verdicts  []provider.RetryVerdict
	exhausted map[int64]bool // activities that have failed in this call
	sends     []nextAttempt
	waiting   []provider.ActivityRetry // the current attempt of each due one, if it is pending
}

// RetryActivities advances the attempt records, on condition that the head is unchanged, and then sends their attempts.
func (rt *Retries) RetryActivities(ctx context.Context, r *provider.RetryRequest) (provider.RetryResult, error) {
	c := &request{
		retries:      rt,
		RetryRequest: r,
		verdicts:     make([]provider.RetryVerdict, len(r.Failed)),
		exhausted:    map[int64]bool{},
	}

	var out provider.RetryResult
	for _, round := range c.rounds() {
		if err := c.decide(ctx, round); err != nil {
			return out, err
		}
	}
	if err := c.addDue(ctx); err != nil {
		return out, err
	}
	if err := c.verify(ctx); err != nil {
		return out, err
	}

	refused, err := c.send(ctx)
	return provider.RetryResult{
		Failed:          c.verdicts,
		RejectedOutputs: refused,
		Waiting:         c.waiting,
		Verified:        c.verified,
	}, err
}

// rounds groups the indices of the failures into rounds with at most one failure of each activity. The verdict on the
// first failure of an activity affects the second one.
func (c *request) rounds() (rounds [][]int) {
	seen := map[int64]int{}
	for i := range c.Failed {
		n := seen[c.Failed[i].ActivityID]
		seen[c.Failed[i].ActivityID] = n + 1
		if n == len(rounds) {
			rounds = append(rounds, nil)
		}
		rounds[n] = append(rounds[n], i)
	}
	return rounds
}

// decide determines the verdicts on failures of different activities.
func (c *request) decide(ctx context.Context, round []int) error {
	var advance, last []int
	for _, i := range round {
		switch o := &c.Failed[i]; {
		case c.exhausted[o.ActivityID]:
		case o.RetryAt != nil:
			advance = append(advance, i)
		default:
			last = append(last, i)
		}
	}

	for batch := range slices.Chunk(advance, table.MaxTransactionItems-1) {
		if err := c.advance(ctx, batch); err != nil {
			return err
		}
	}

	err := c.decideLast(ctx, last)
	for _, i := range round {
		if c.verdicts[i] == provider.RetryExhausted {
			c.exhausted[c.Failed[i].ActivityID] = true
		}
	}
	return err
}

// decideLast determines the verdicts on failures without a next attempt. A failure counts if its attempt is the current
// one, and the commit that records it is conditional on the head. A failure whose run led to the current attempt was
// reported before, when a next attempt was possible. That attempt may not have been sent.
func (c *request) decideLast(ctx context.Context, last []int) error {
	found, err := c.readCurrent(ctx, len(last), func(n int) int64 { return c.Failed[last[n]].ActivityID })
	if err != nil {
		return err
	}
	for n, i := range last {
		switch o, current := &c.Failed[i], &found[n]; {
		case current.Attempt == 0 || current.Attempt == o.Attempt:
			c.verdicts[i] = provider.RetryExhausted
		case current.Attempt == o.Attempt+1 && current.Run == o.Run:
			c.addNext(i, current.At, true, current.Ended)
		}
	}
	return nil
}

// readCurrent reads the attempt records of n activities concurrently.
func (c *request) readCurrent(
	ctx context.Context, n int, activityID func(n int) int64,
) (found []provider.ActivityRetry, err error) {
	found = make([]provider.ActivityRetry, n)
	return found, awscall.ForEach(n, func(i int) (err error) {
		found[i], err = c.retries.Attempts.ReadRetry(ctx, c.Head.ExecutionID, activityID(i))
		return err
	})
}

// addNext records that the attempt after a failure is the current one and must be sent.
func (c *request) addNext(i int, at time.Time, again bool, ended string) {
	o := &c.Failed[i]
	c.verdicts[i] = provider.RetryNext
	c.sends = append(c.sends, nextAttempt{
		activityID: o.ActivityID,
		segment:    o.Segment,
		number:     o.Attempt + 1,
		run:        o.Run,
		at:         at,
		again:      again,
		ended:      ended,
	})
}

// addDue finds the due attempts that are current, and adds them to the attempts to send.
func (c *request) addDue(ctx context.Context) error {
	found, err := c.readCurrent(ctx, len(c.Due), func(n int) int64 { return c.Due[n].ActivityID })
	if err != nil {
		return err
	}
	for i := range c.Due {
		due, current := &c.Due[i], &found[i]
		again := current.Attempt == due.Attempt+1 && current.Run == provider.TimeoutRunID(due.Attempt, due.MessageID)
		switch {
		case current.Attempt == 0 || due.Attempt > 0 && due.Attempt != current.Attempt && !again:
		case !again && current.Pending != nil:
			if c.waiting == nil {
				c.waiting = make([]provider.ActivityRetry, len(c.Due))
			}
			c.waiting[i] = *current
		default:
			next := nextAttempt{
				activityID: due.ActivityID, segment: due.Segment, number: current.Attempt, at: current.At, again: again,
				ended: current.Ended,
			}
			if again {
				next.run = current.Run
			}
			c.sends = append(c.sends, next)
		}
	}
	return nil
}

// verify checks that the head is current, if no write has done so and no commit will.
func (c *request) verify(ctx context.Context) error {
	unneeded := len(c.Due) == 0
	for _, v := range c.verdicts {
		unneeded = unneeded && v == provider.RetryExhausted
	}
	if c.verified || unneeded {
		return nil
	}
	if err := c.retries.Table.Transact(
		ctx, c.InstanceID, []types.TransactWriteItem{{ConditionCheck: c.headCondition()}},
	); err != nil {
		return c.conflict(err)
	}
	c.verified = true
	return nil
}
