package perduretest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

// progress counts the turns of the instances of an Env. It is safe for concurrent use.
type progress struct {
	mu sync.Mutex
	by map[string]instanceProgress
}

// instanceProgress is the progress of one instance.
type instanceProgress struct {
	orchestration, executionID string
	status                     history.RuntimeStatus
	executions, turns          int
	failure                    *history.Failure
}

// interceptor returns an interceptor that counts committed turns.
func (p *progress) interceptor() perdure.Interceptor {
	return perdure.Interceptor{Turn: func(
		ctx context.Context, t perdure.TurnInfo, next func(context.Context) perdure.TurnResult,
	) {
		if r := next(ctx); r.Committed {
			p.count(&t, &r)
		}
	}}
}

func (p *progress) count(t *perdure.TurnInfo, r *perdure.TurnResult) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil {
		p.by = map[string]instanceProgress{}
	}
	c := p.by[t.InstanceID]
	if c.executionID != t.ExecutionID {
		c.executions++
	}
	c.orchestration, c.executionID, c.status, c.failure = t.Name, t.ExecutionID, r.Status, r.Failure
	c.turns++
	p.by[t.InstanceID] = c
}

// now returns the progress by instance. It is never nil.
func (p *progress) now() map[string]instanceProgress {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil {
		return map[string]instanceProgress{}
	}
	return maps.Clone(p.by)
}

// maxShown limits the instances in a failure message.
const maxShown = 3

// since describes the instances with the most turns since an earlier state.
func (p *progress) since(before map[string]instanceProgress) string {
	now := p.now()
	moved := slices.SortedFunc(maps.Keys(now), func(a, b string) int {
		if d := (now[b].turns - before[b].turns) - (now[a].turns - before[a].turns); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var b strings.Builder
	for i, id := range moved {
		c := now[id]
		turns := c.turns - before[id].turns
		if i == maxShown || turns == 0 {
			break
		}
		fmt.Fprintf(&b, "\n  instance %q of orchestration %q is %s: %s",
			id, c.orchestration, c.status, c.describeSince(before[id]))
		if c.failure != nil {
			b.WriteString(", " + failureText(c.failure))
		}
	}
	return b.String()
}

// describeSince describes the progress since an earlier state.
func (c instanceProgress) describeSince(from instanceProgress) string {
	text := fmt.Sprintf("%d turns", c.turns-from.turns)
	if n := c.executions - from.executions; n > 1 {
		text += fmt.Sprintf(" in %d executions (continued as new)", n)
	}
	return text
}
