// Package retries makes the next attempts of activities current, sends them, and stores pending attempts with their
// timers. All writes require that the caller's head is the head of the history.
package retries

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/attempts"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/lru"
	"github.com/perdure/perdure/provider/dynamo/internal/outbox"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/dynamo/internal/workqueue"
	"github.com/perdure/perdure/provider/outputs"
)

// Stores are the stores that Retries reads and writes.
type Stores struct {
	Table      *table.Table
	Queue      *sqsqueue.Queues
	WorkQueues *workqueue.WorkQueues
	Attempts   *attempts.Store
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
	return &Retries{Stores: s, now: now, sent: lru.New[struct{}](maxSentRetries)}
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

// nextAttempt is an attempt to send.
type nextAttempt struct {
	activityID, segment int64
	number              int
	run                 string
	at                  time.Time
	again               bool
	ended               string // the CancelOutcome of an earlier, abandoned attempt
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

// rounds groups the indices of the failures into rounds with at most one failure of each activity, because the verdict
// on the first failure affects the second one.
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

// advance makes the next attempts current, for failures of current attempts, in one transaction that also checks the
// head. A failure whose write is rejected was reported before, or is not of the current attempt. The others are then
// tried again.
func (c *request) advance(ctx context.Context, batch []int) error {
	for len(batch) > 0 {
		writes := make([]types.TransactWriteItem, 1, len(batch)+1)
		writes[0].ConditionCheck = c.headCondition()
		for _, i := range batch {
			u, err := c.advanceUpdate(&c.Failed[i])
			if err != nil {
				return err
			}
			writes = append(writes, types.TransactWriteItem{Update: u})
		}

		err := c.retries.Table.Transact(ctx, c.InstanceID, writes)
		if err == nil {
			for _, i := range batch {
				c.addNext(i, *c.Failed[i].RetryAt, false, c.Failed[i].Ended)
			}
			c.verified = true
			return nil
		}

		rest, known := c.withoutRefused(batch, err)
		if !known {
			return c.conflict(err)
		}
		batch = rest
	}
	return nil
}

// withoutRefused removes the failures from a batch that made its transaction fail, and sets their verdicts. known is
// false if there are none.
func (c *request) withoutRefused(batch []int, failed error) (rest []int, known bool) {
	if _, moved := table.FailedItem(failed, 0); moved || !table.ConditionFailed(failed) {
		return nil, false
	}
	for n, i := range batch {
		old, refused := table.FailedItem(failed, n+1)
		if !refused {
			rest = append(rest, i)
			continue
		}
		known = true
		o := &c.Failed[i]
		if table.GetString(old, attempts.AttrRun) != o.Run ||
			int(table.GetNumber(old, attempts.AttrAttempt)) != o.Attempt+1 {
			continue // it is not the current attempt
		}
		if r, err := attempts.Decode(old); err == nil {
			c.addNext(i, r.At, true, r.Ended)
		} else {
			c.addNext(i, *o.RetryAt, true, o.Ended)
		}
	}
	return rest, known
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

// headCondition returns the condition that the caller's head is the head. A caller with a stale view, or one that is
// late for a deleted instance, changes nothing.
func (c *request) headCondition() *types.ConditionCheck {
	return &types.ConditionCheck{
		Key:                 table.ExecutionKey(c.Head.ExecutionID, table.SegmentSK(c.Head.Segment+1, 0)),
		ConditionExpression: aws.String(table.NotExists),
		// The item is not returned, which distinguishes a failure of this condition from others.
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureNone,
	}
}

// advanceUpdate returns the update that makes the attempt after a failure current. For a later attempt there may be no
// item, because in an earlier release the workers sent the next attempt.
func (c *request) advanceUpdate(o *provider.ActivityOutcome) (*types.Update, error) {
	why, err := attempts.EncodeFailure(o.Error)
	if err != nil {
		return nil, err
	}
	u := &types.Update{
		Key: table.AttemptKey(c.Head.ExecutionID, o.ActivityID),
		UpdateExpression: aws.String(
			"SET #attempt = :next, #run = :run, #at = :due, #failedAt = :now, #error = :error",
		),
		ConditionExpression: aws.String("attribute_not_exists(#attempt) OR #attempt = :failed"),
		ExpressionAttributeNames: table.Names(
			attempts.AttrAttempt, attempts.AttrRun, attempts.AttrAt, attempts.AttrFailedAt, attempts.AttrError,
		),
		ExpressionAttributeValues: table.Item{
			":failed": table.Num(int64(o.Attempt)),
			":next":   table.Num(int64(o.Attempt) + 1),
			":run":    table.Str(o.Run),
			":error":  table.Str(why),
			":due":    table.Str(table.FormatTime(*o.RetryAt)),
			":now":    table.Str(table.FormatTime(c.retries.now())),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if o.Ended != "" { // abandoned code can run forever, and a later attempt does not change that
		u.UpdateExpression = aws.String(*u.UpdateExpression + ", #ended = :ended")
		u.ExpressionAttributeNames["#ended"] = attempts.AttrEnded
		u.ExpressionAttributeValues[":ended"] = table.Str(o.Ended)
	}
	return u, nil
}

// conflict returns the error of a transaction: ErrConflict if a condition failed.
func (c *request) conflict(err error) error {
	if !table.ConditionFailed(err) {
		return err
	}
	return fmt.Errorf(
		"dynamo: instance %q: retries at segment %d of execution %s: %w", c.InstanceID, c.Head.Segment,
		c.Head.ExecutionID, provider.ErrConflict,
	)
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
	needless := len(c.Due) == 0
	for _, v := range c.verdicts {
		needless = needless && v == provider.RetryExhausted
	}
	if c.verified || needless {
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

// send sends attempts with a delay or a timer.
func (c *request) send(ctx context.Context) ([]provider.OutputFailure, error) {
	var out outputs.Set
	var refused []provider.OutputFailure
	ended := map[int64]string{}

	for i := range c.sends {
		a := &c.sends[i]
		if a.again && c.retries.sent.Has(c.cacheKey(a)) {
			continue // this process has seen it arrive
		}
		left := a.at.Sub(c.retries.now())
		if left > c.retries.Queue.MaxDelay {
			out.Timers = append(out.Timers, c.timer(a))
			continue
		}

		w, err := c.retries.WorkItems.Find(ctx, c.InstanceID, c.Head.ExecutionID, a.segment, a.activityID)
		switch {
		case errors.Is(err, table.ErrDeleted):
			return nil, fmt.Errorf(
				"dynamo: instance %q: segment %d: %w: %w", c.InstanceID, a.segment, provider.ErrConflict, err,
			)
		case errors.Is(err, provider.ErrNotFound):
			refused = append(refused, workqueue.RejectOutput(a.activityID, "OutputRefusedError",
				"attempt %d: segment %d does not schedule this activity", a.number, a.segment))
			continue
		case err != nil:
			return nil, err
		case left > c.retries.WorkQueues.MaxDelay(&w):
			out.Timers = append(out.Timers, c.timer(a))
			continue
		}

		w.Attempt = a.number
		w.NotBefore = &a.at
		w.PossibleDuplicate = true
		out.WorkItems = append(out.WorkItems, w)
		if w.WaitForCancellation {
			ended[a.activityID] = cmp.Or(a.ended, history.OutcomeReturned)
		}
	}

	more, err := c.retries.Outbox.SendOutputs(ctx, &out)
	for i := range more { // an attempt has run before the one that cannot be sent
		more[i].Ended = ended[more[i].EventID]
	}
	if refused = append(refused, more...); err == nil && len(refused) == 0 {
		for i := range c.sends {
			c.retries.sent.Add(c.cacheKey(&c.sends[i]), struct{}{}, 1)
		}
	}
	return refused, err
}

// timer returns the timer that starts an attempt.
func (c *request) timer(a *nextAttempt) provider.Timer {
	return provider.Timer{
		V: provider.WireVersion, InstanceID: c.InstanceID, ExecutionID: c.Head.ExecutionID, Segment: a.segment,
		TimerID: a.activityID, FireAt: a.at, Attempt: a.number,
	}
}

// cacheKey returns a key for an attempt that was sent for a failure.
func (c *request) cacheKey(a *nextAttempt) string {
	return fmt.Sprintf("%s %d %d %s", c.Head.ExecutionID, a.activityID, a.number, a.run)
}

// maxSentRetries is the maximum number of sent attempts that a process remembers: a message that could not be deleted
// is redelivered within minutes.
const maxSentRetries = 4096
