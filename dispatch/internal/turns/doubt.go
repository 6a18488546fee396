package turns

import (
	"context"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/faults"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// doubt is that the code parted from a history that may have been old: the history is to blame, or the code. It is empty where there is none.
type doubt struct {
	head provider.Head
	err  error
}

// doubtOf is the doubt that a look at the head is to end.
func doubtOf(x *execution, err error) doubt {
	if why := diagnosis(err); why == nil || why.Type != history.TypeNondeterminism {
		return doubt{}
	}
	return doubt{x.head, err}
}

// report logs that the code was to blame, and fits all the same: of one history it has decided otherwise the first time, and not the second. Nothing
// else would tell, and the next time it may block the instance.
func (d doubt) report(ctx context.Context, s *session) {
	if d.err == nil || s.x == nil || s.x.broken != nil || s.x.head != d.head {
		return
	}
	faults.ReportError(ctx, s.item.InstanceID, d.err)
	s.o.options.Logger.WarnContext(ctx, "nondeterministic code: a second replay made other decisions",
		"event", logevent.ReplayNondeterministic, "instance", s.item.InstanceID, "execution", d.head.ExecutionID,
		"buildId", s.o.options.BuildID, "error", d.err)
}
