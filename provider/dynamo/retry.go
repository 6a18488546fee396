package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider"
)

// transactionItems is how many items a transaction may write (a DynamoDB quota).
const transactionItems = 100

// retrying is one call of RetryActivities.
type retrying struct {
	p *Provider
	*provider.Retries

	verified bool
	verdicts []provider.RetryVerdict
	over     map[int64]bool // activities that have failed in this call
	sends    []attempt
}

// attempt is one to send.
type attempt struct {
	activityID, segment int64
	number              int
	run                 string
	at                  time.Time
	again               bool
}

// RetryActivities advances the items of retries under the fence of a turn, and then sends what they say.
func (p *Provider) RetryActivities(ctx context.Context, r *provider.Retries) (provider.Retried, error) {
	c := &retrying{p: p, Retries: r, verdicts: make([]provider.RetryVerdict, len(r.Failed)), over: map[int64]bool{}}
	var out provider.Retried
	for _, round := range c.rounds() {
		if err := c.judge(ctx, round); err != nil {
			return out, err
		}
	}
	if err := c.lookAtDue(ctx); err != nil {
		return out, err
	}
	if err := c.verify(ctx); err != nil {
		return out, err
	}
	refused, err := c.send(ctx)
	return provider.Retried{Failed: c.verdicts, Refused: refused, Verified: c.verified}, err
}

// rounds are the failures by their indices, so that none has two of one activity: what the first says decides on the second.
func (c *retrying) rounds() (rounds [][]int) {
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

// judge finds the verdicts on failures of different activities.
func (c *retrying) judge(ctx context.Context, round []int) error {
	var advance, last []int
	for _, i := range round {
		switch o := &c.Failed[i]; {
		case c.over[o.ActivityID]:
		case o.RetryAt != nil:
			advance = append(advance, i)
		default:
			last = append(last, i)
		}
	}
	for len(advance) > 0 {
		n := min(len(advance), transactionItems-1)
		if err := c.advance(ctx, advance[:n]); err != nil {
			return err
		}
		advance = advance[n:]
	}
	err := c.lookAtLast(ctx, last)
	for _, i := range round {
		if c.verdicts[i] == provider.RetryOver {
			c.over[c.Failed[i].ActivityID] = true
		}
	}
	return err
}

// lookAtLast finds the verdicts on failures that no attempt follows. One counts if its attempt is the current one; the commit that
// records it is the fence. One whose run has led to the current attempt all the same was told before, when it could: what it led to may not
// have been sent.
func (c *retrying) lookAtLast(ctx context.Context, last []int) error {
	found := make([]provider.ActivityRetry, len(last))
	looks := make([]func() error, len(last))
	for n, i := range last {
		looks[n] = func() (err error) {
			found[n], err = c.p.ReadRetry(ctx, c.Head.ExecutionID, c.Failed[i].ActivityID)
			return err
		}
	}
	if err := together(looks...); err != nil {
		return err
	}
	for n, i := range last {
		switch o, current := &c.Failed[i], &found[n]; {
		case current.Attempt == 0 || current.Attempt == o.Attempt:
			c.verdicts[i] = provider.RetryOver
		case current.Attempt == o.Attempt+1 && current.Run == o.Run:
			c.next(i, current.At, true)
		}
	}
	return nil
}

// advance makes the next attempts the current ones, of those failures whose attempts are, in one transaction that checks that no turn was
// committed beyond the view. What is refused is told before, or not of the current attempt; then the rest is tried again.
func (c *retrying) advance(ctx context.Context, batch []int) error {
	for len(batch) > 0 {
		writes := make([]types.TransactWriteItem, 1, len(batch)+1)
		writes[0].ConditionCheck = c.fence()
		for _, i := range batch {
			u, err := c.update(&c.Failed[i])
			if err != nil {
				return err
			}
			writes = append(writes, types.TransactWriteItem{Update: u})
		}
		err := c.p.transact(ctx, c.InstanceID, writes)
		if err == nil {
			for _, i := range batch {
				c.next(i, *c.Failed[i].RetryAt, false)
			}
			c.verified = true
			return nil
		}
		rest, known := c.without(batch, err)
		if !known {
			return c.conflict(err)
		}
		batch = rest
	}
	return nil
}

// without takes out of a batch what made its transaction fail, with a verdict on each. It does not know what to do where that is nothing.
func (c *retrying) without(batch []int, failed error) (rest []int, known bool) {
	if _, moved := refusedItem(failed, 0); moved || !conditionFailed(failed) {
		return nil, false
	}
	for n, i := range batch {
		old, refused := refusedItem(failed, n+1)
		if !refused {
			rest = append(rest, i)
			continue
		}
		known = true
		o := &c.Failed[i]
		if getString(old, attrRun) != o.Run || int(getNumber(old, attrAttempt)) != o.Attempt+1 {
			continue // not the current one
		}
		if r, err := decodeRetry(old); err == nil {
			c.next(i, r.At, true)
		} else {
			c.next(i, *o.RetryAt, true)
		}
	}
	return rest, known
}

// next notes that the attempt after a failure is the current one, and to be sent.
func (c *retrying) next(i int, at time.Time, again bool) {
	o := &c.Failed[i]
	c.verdicts[i] = provider.RetryNext
	c.sends = append(c.sends, attempt{activityID: o.ActivityID, segment: o.Segment, number: o.Attempt + 1, run: o.Run, at: at, again: again})
}

// fence is the condition that the view ends with the head: whoever has a stale one, or is late for an instance that is deleted,
// changes nothing.
func (c *retrying) fence() *types.ConditionCheck {
	return &types.ConditionCheck{
		TableName:           &c.p.hub.Table,
		Key:                 item{attrPK: str(executionPK(c.Head.ExecutionID)), attrSK: str(segmentSK(c.Head.Segment+1, 0))},
		ConditionExpression: aws.String(notExists),
		// What is there tells a refusal of this condition from any other.
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureNone,
	}
}

// update makes the attempt after a failure the current one. Of an attempt beyond the first nothing may be there: a release before this
// one had its workers send the next.
func (c *retrying) update(o *provider.ActivityOutcome) (*types.Update, error) {
	why, err := encodeFailure(o.Error)
	if err != nil {
		return nil, err
	}
	u := &types.Update{
		TableName: &c.p.hub.Table, Key: retryKey(c.Head.ExecutionID, o.ActivityID),
		UpdateExpression:    aws.String("SET #attempt = :next, #run = :run, #at = :due, #failedAt = :now, #error = :error"),
		ConditionExpression: aws.String("attribute_not_exists(#attempt) OR #attempt = :failed"),
		ExpressionAttributeNames: map[string]string{
			"#attempt": attrAttempt, "#run": attrRun, "#at": attrAt, "#failedAt": attrFailedAt, "#error": attrError,
		},
		ExpressionAttributeValues: item{
			":failed": num(int64(o.Attempt)), ":next": num(int64(o.Attempt) + 1), ":run": str(o.Run), ":error": str(why),
			":due": str(formatTime(*o.RetryAt)), ":now": str(formatTime(c.p.now())),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if o.Ended != "" { // what has been given up may run for ever: a later attempt does not take that back
		u.UpdateExpression = aws.String(*u.UpdateExpression + ", #ended = :ended")
		u.ExpressionAttributeNames["#ended"], u.ExpressionAttributeValues[":ended"] = attrEnded, str(o.Ended)
	}
	return u, nil
}

// conflict is what a transaction failed with: of a condition, that the history has moved on.
func (c *retrying) conflict(err error) error {
	if !conditionFailed(err) {
		return err
	}
	return fmt.Errorf("dynamo: instance %q: retries at segment %d of execution %s: %w", c.InstanceID, c.Head.Segment, c.Head.ExecutionID, provider.ErrConflict)
}

// lookAtDue finds what of the due attempts is the current one.
func (c *retrying) lookAtDue(ctx context.Context) error {
	found := make([]provider.ActivityRetry, len(c.Due))
	looks := make([]func() error, len(c.Due))
	for i := range c.Due {
		looks[i] = func() (err error) {
			found[i], err = c.p.ReadRetry(ctx, c.Head.ExecutionID, c.Due[i].ActivityID)
			return err
		}
	}
	if err := together(looks...); err != nil {
		return err
	}
	for i := range c.Due {
		due, current := &c.Due[i], &found[i]
		if current.Attempt > 0 && (due.Attempt == 0 || due.Attempt == current.Attempt) {
			c.sends = append(c.sends, attempt{activityID: due.ActivityID, segment: due.Segment, number: current.Attempt, at: current.At})
		}
	}
	return nil
}

// verify checks that the head is the head where no write has, and no commit will.
func (c *retrying) verify(ctx context.Context) error {
	needless := len(c.Due) == 0
	for _, v := range c.verdicts {
		needless = needless && v == provider.RetryOver
	}
	if c.verified || needless {
		return nil
	}
	if err := c.p.transact(ctx, c.InstanceID, []types.TransactWriteItem{{ConditionCheck: c.fence()}}); err != nil {
		return c.conflict(err)
	}
	c.verified = true
	return nil
}

// send sends attempts: with a delay, or by a timer.
func (c *retrying) send(ctx context.Context) ([]provider.OutputFailure, error) {
	var out provider.Outputs
	var refused []provider.OutputFailure
	for i := range c.sends {
		a := &c.sends[i]
		if a.again && c.p.sentRetries.has(c.sent(a)) {
			continue // this process knows that it arrived
		}
		if a.at.Sub(c.p.now()) > c.p.longestDelay {
			out.Timers = append(out.Timers, provider.Timer{
				V: provider.WireVersion, InstanceID: c.InstanceID, ExecutionID: c.Head.ExecutionID, Segment: a.segment,
				TimerID: a.activityID, FireAt: a.at, Attempt: a.number,
			})
			continue
		}
		w, err := c.p.scheduledActivity(ctx, c.InstanceID, c.Head.ExecutionID, a.segment, a.activityID)
		switch {
		case errors.Is(err, errStub):
			return nil, fmt.Errorf("dynamo: instance %q: segment %d: %w: %w", c.InstanceID, a.segment, provider.ErrConflict, err)
		case errors.Is(err, provider.ErrNotFound):
			refused = append(refused, refuse(a.activityID, "OutputRefusedError", "attempt %d: segment %d schedules no such activity", a.number, a.segment))
			continue
		case err != nil:
			return nil, err
		}
		w.Attempt, w.NotBefore, w.Again = a.number, &a.at, true
		out.WorkItems = append(out.WorkItems, w)
	}
	more, err := c.p.sendOutputs(ctx, &out)
	if refused = append(refused, more...); err == nil && len(refused) == 0 {
		for i := range c.sends {
			c.p.sentRetries.add(c.sent(&c.sends[i]), struct{}{}, 1)
		}
	}
	return refused, err
}

// sent names an attempt that was sent for a failure.
func (c *retrying) sent(a *attempt) string {
	return fmt.Sprintf("%s %d %d %s", c.Head.ExecutionID, a.activityID, a.number, a.run)
}

// sentRetries is how many attempts a process remembers that it has sent: a message that could not be deleted comes again within
// minutes.
const sentRetries = 4096

// ReadRetry reads one item.
func (p *Provider) ReadRetry(ctx context.Context, executionID string, activityID int64) (provider.ActivityRetry, error) {
	it, err := p.getExecutionItem(ctx, executionID, retrySK(activityID))
	if err != nil || len(it) == 0 {
		return provider.ActivityRetry{ActivityID: activityID}, err
	}
	return decodeRetry(it)
}
