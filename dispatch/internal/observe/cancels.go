package observe

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// maxNames is the maximum number of sub-orchestrations that a log line names. A turn may cancel all of an instance.
const maxNames = 10

// children counts sub-orchestrations for one log line.
type children struct {
	n      int
	first  []string
	reason string // of the first one
}

func (c *children) add(e *history.Event, reason string) {
	if c.n++; c.n == 1 {
		c.reason = reason
	}
	if len(c.first) < maxNames {
		c.first = append(c.first, fmt.Sprintf("#%d %s", e.SourceEventID, e.InstanceID))
	}
}

func (c *children) names() string { return strings.Join(c.first, ", ") }

// logCancels logs the cancels of sub-orchestrations in a committed turn: one line for each kind of event.
func logCancels(ctx context.Context, log *slog.Logger, t *provider.Turn) {
	var requested, ended, failed children
	for i := range t.Events {
		switch e := &t.Events[i]; e.Kind {
		case history.SubOrchestrationCancelRequested:
			requested.add(e, e.Reason)
		case history.SubOrchestrationCancelFailed:
			failed.add(e, messageOf(e.Error))
		case history.SubOrchestrationFailed:
			if e.Error != nil && e.Error.Type == history.TypeCancelled {
				ended.add(e, e.Error.Reason)
			}
		default:
		}
	}
	if requested.n > 0 {
		log.InfoContext(ctx, "requesting cancellation of sub-orchestrations",
			"event", logevent.SubOrchestrationCancelRequested, "instance", t.InstanceID,
			"execution", t.Head.ExecutionID, "children", requested.n, "first", requested.names(),
			"reason", requested.reason)
	}
	if ended.n > 0 {
		log.InfoContext(ctx, "cancelled sub-orchestrations ended", "event", logevent.SubOrchestrationCancelled,
			"instance", t.InstanceID, "execution", t.Head.ExecutionID, "children", ended.n, "first", ended.names(),
			"reason", ended.reason)
	}
	if failed.n > 0 {
		log.WarnContext(ctx, "cancelling sub-orchestrations failed", "event", logevent.SubOrchestrationCancelFailed,
			"instance", t.InstanceID, "execution", t.Head.ExecutionID, "children", failed.n, "first", failed.names(),
			"error", failed.reason)
	}
}

func messageOf(f *history.Failure) string {
	if f == nil {
		return ""
	}
	return f.Message
}
