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

// progress is how far the instances of an Env have come: the turns that their histories hold. It is noted from all goroutines.
type progress struct {
	mu sync.Mutex
	by map[string]course
}

// course is how far one instance has come.
type course struct {
	orchestration, executionID string
	status                     history.RuntimeStatus
	executions, turns          int
	failure                    *history.Failure
}

// interceptor notes each turn that is committed.
func (p *progress) interceptor() perdure.Interceptor {
	return perdure.Interceptor{Turn: func(ctx context.Context, t perdure.TurnInfo, next func(context.Context) perdure.TurnResult) {
		if r := next(ctx); r.Committed {
			p.note(&t, &r)
		}
	}}
}

func (p *progress) note(t *perdure.TurnInfo, r *perdure.TurnResult) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil {
		p.by = map[string]course{}
	}
	c := p.by[t.InstanceID]
	if c.executionID != t.ExecutionID {
		c.executions++
	}
	c.orchestration, c.executionID, c.status, c.failure = t.Name, t.ExecutionID, r.Status, r.Failure
	c.turns++
	p.by[t.InstanceID] = c
}

// now is how far they have come, by instance; never nil.
func (p *progress) now() map[string]course {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil {
		return map[string]course{}
	}
	return maps.Clone(p.by)
}

// mostShown is how many instances a failure names.
const mostShown = 3

// since describes the instances that have come furthest since an earlier look.
func (p *progress) since(before map[string]course) string {
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
		if i == mostShown || turns == 0 {
			break
		}
		fmt.Fprintf(&b, "\n  instance %q of orchestration %q is %s: %s", id, c.orchestration, c.status, c.travelled(before[id]))
		if c.failure != nil {
			b.WriteString(", " + failureText(c.failure))
		}
	}
	return b.String()
}

// travelled is how far an instance has come since it was somewhere.
func (c course) travelled(from course) string {
	text := fmt.Sprintf("%d turns", c.turns-from.turns)
	if n := c.executions - from.executions; n > 1 {
		text += fmt.Sprintf(" in %d executions (continued as new)", n)
	}
	return text
}
