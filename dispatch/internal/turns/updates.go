package turns

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/payloads"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/provider"
)

// answerAgain answers updates that have come again and are over, before the turn is committed in which they came: who sends one again has not
// found its answer, which is kept for a time. History has what came of it, or it is forgotten: then an execution before this one has taken it. What every
// turn has answered is sent by now (I4).
func answerAgain(ctx context.Context, s *session, out *replay.Outcome) (next, error) {
	if next, err := turnAway(ctx, s, out.TurnedAway); next != goOn || err != nil {
		return next, err
	}
	repeated := out.Repeated
	if len(repeated) == 0 {
		return goOn, nil
	}
	if !s.x.verified || s.x.read == nil {
		return verify, nil // history has to be read
	}
	if err := mailAgain(ctx, s, repeated); err != nil {
		return goOn, err
	}
	if err := s.o.provider.PutUpdateResults(ctx, provider.RepeatedUpdateResults(s.x.read, repeated)...); err != nil {
		return goOn, fmt.Errorf("dispatch: instance %q: answer repeated updates: %w", s.item.InstanceID, err)
	}
	return goOn, tellAgain(ctx, s, out.Callers)
}

// mailAgain has answers that are given again own what lies in the store: the copies of the first ones may have expired. Of a result that is gone the answer
// says so to who opens it.
func mailAgain(ctx context.Context, s *session, repeated map[string]string) error {
	v := s.o.encoding
	if !v.HasStore() {
		return nil
	}
	for i := range s.x.read.Segments {
		events := s.x.read.Segments[i].Events
		for j := range events {
			if _, again := repeated[events[j].EventID]; !again || events[j].Kind != history.UpdateCompleted {
				continue
			}
			if err := v.CopyForMessages(ctx, s.x.read.Origin(), events[j:j+1]); err != nil && !payloads.IsPermanent(err) {
				return fmt.Errorf("dispatch: instance %q: answer repeated updates: %w", s.item.InstanceID, err)
			}
		}
	}
	return nil
}
