package turns

import (
	"context"
	"log/slog"
	"reflect"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/provider"
)

// A session that is used again has nothing of the item before.
func TestASessionIsUsedAgainEmpty(t *testing.T) {
	t.Parallel()
	o := &Orchestrator{sessions: newSessions()}
	s := o.newSession(&provider.OrchestrationItem{InstanceID: "a", Messages: make([]provider.InboxMessage, 1)}, true)
	s.x, s.absent, s.mostParked, s.about = &execution{}, true, 1, "x"
	s.attempts.deal(source{"r", 0})
	s.commit = provider.Turn{InstanceID: "a"}
	o.sessions.giveBack(s)
	if !reflect.DeepEqual(s, &session{}) {
		t.Errorf("it has %+v", s)
	}
}

// Code that may still run must not reach the session of another item: that of inline activities, and of interceptors.
func TestASessionThatOthersMayHaveIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(s *session){
		"an inline activity has begun": func(s *session) { s.steps.begin(t.Context(), s.began) },
		"there are interceptors": func(s *session) {
			s.o.interceptors = interceptorsOf(&Options{Logger: slog.Default(), Interceptors: []perdure.Interceptor{{
				Turn: func(ctx context.Context, _ perdure.TurnInfo, next func(context.Context) perdure.TurnResult) {
					next(ctx)
				},
			}}})
		},
	} {
		o := &Orchestrator{sessions: newSessions()}
		s := o.newSession(&provider.OrchestrationItem{InstanceID: "a"}, false)
		of(s)
		o.sessions.giveBack(s)
		if s.item == nil || o.sessions.take() == s {
			t.Errorf("%s: it is used again", name)
		}
	}
}
