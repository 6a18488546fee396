package perduretest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/perduretest/internal/goroutines"
)

// Call is one run of an activity's code or of its stub. Each retry, and each redelivery that runs the code again after
// a crash, is a separate Call. All fields are plain values that a test can compare.
type Call struct {
	// Activity is the activity's name. InstanceID is the instance that called it. ActivityID is the ID of the event
	// that scheduled it.
	Activity, InstanceID string
	ActivityID           int64
	// Attempt is the number of the attempt under the retry policy, from 1.
	Attempt int
	// Input is the activity's input as JSON.
	Input json.RawMessage
	// StartedAt is the start of the code, in virtual time since the Env was created. Duration is the run time of the
	// code. If Running is true, it is the run time so far.
	StartedAt, Duration time.Duration
	Running             bool
	// Output is the result as JSON, and Error is the message of the error. Both are empty while Running is true.
	Output json.RawMessage
	Error  string
}

// CallInput returns the input of a call as a T.
func CallInput[T any](c Call) (T, error) {
	var in T
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return in, fmt.Errorf("perduretest: decode input of activity %q as %T: %w", c.Activity, in, err)
	}
	return in, nil
}

// Calls returns the calls of the named activities, or of all activities if no name is given, in the order in which they
// started.
func (e *Env) Calls(activities ...string) []Call {
	e.t.Helper()
	e.deployed.reject(e.t, "Calls")
	now := e.Now()
	return e.log.list(now, activities)
}

// callLog holds the calls of activities. It is safe for concurrent use.
type callLog struct {
	mu    sync.Mutex
	began time.Time
	all   []*runningCall
}

// runningCall is a call with the goroutine that runs it.
type runningCall struct {
	Call

	goroutine string
}

func (l *callLog) begin(ctx context.Context, name string, input json.RawMessage) *runningCall {
	info := perdure.ActivityInfoFrom(ctx)
	c := &runningCall{
		Call: Call{
			Activity: name, InstanceID: info.InstanceID, ActivityID: info.ActivityID, Attempt: info.Attempt,
			Input: slices.Clone(input), StartedAt: time.Since(l.began), Running: true,
		},
		goroutine: goroutines.Current().ID,
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, c)
	return c
}

func (l *callLog) end(c *runningCall, output json.RawMessage, failure *history.Failure) {
	took := time.Since(l.began) - c.StartedAt
	l.mu.Lock()
	defer l.mu.Unlock()
	c.Running = false
	c.Duration = took
	if failure != nil {
		c.Error = cmp.Or(failure.Message, failure.Reason, failure.Type)
		return
	}
	c.Output = slices.Clone(output)
}

// list returns the calls of some activities.
func (l *callLog) list(now time.Time, names []string) []Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []Call
	for _, c := range l.all {
		if len(names) > 0 && !slices.Contains(names, c.Activity) {
			continue
		}
		call := c.Call
		if call.Running {
			call.Duration = now.Sub(l.began) - call.StartedAt
		}
		found = append(found, call)
	}
	return found
}

// running returns the calls that have not ended.
func (l *callLog) running() []runningCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []runningCall
	for _, c := range l.all {
		if c.Running {
			found = append(found, *c)
		}
	}
	return found
}
