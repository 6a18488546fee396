package turns

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/provider"
)

// answerAgain answers updates that have come again and are over, before the turn is committed in which they came: who sends one again has not
// found its answer, which is kept for a time. History has what came of it, or it is forgotten: then an execution before this one has taken it. What every
// turn has answered is sent by now (I4).
func answerAgain(ctx context.Context, s *session, repeated map[string]string) (next, error) {
	if len(repeated) == 0 {
		return goOn, nil
	}
	if !s.x.verified || s.x.read == nil {
		return verify, nil // history has to be read
	}
	if err := s.o.provider.AnswerUpdates(ctx, provider.AnswersAgain(s.x.read, repeated)...); err != nil {
		return goOn, fmt.Errorf("dispatch: instance %q: updates that came again: %w", s.item.InstanceID, err)
	}
	return goOn, nil
}
