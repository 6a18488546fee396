package activityctx_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/internal/activityctx"
)

type activity struct{ large bool }

func (activity) Info() activityctx.Info        { return activityctx.Info{Name: "charge"} }
func (activity) Token() string                 { return "secret" }
func (a activity) TakesLargePayloads() bool    { return a.large }
func (activity) Record(json.RawMessage, error) {}
func (activity) LastDetails() json.RawMessage  { return nil }
func heartbeats(ctx context.Context) (is bool) { _, is = activityctx.HeartbeatsFrom(ctx); return is }

func tokenIn(ctx context.Context) (made string) {
	return activityctx.InfoWithToken(ctx).CompletionToken
}

// Only the context for the code of the activity has the token and the heartbeats.
func TestFor_hasNeitherTokenNorHeartbeats(t *testing.T) {
	t.Parallel()
	worker, code := activityctx.For(t.Context(), activity{}), activityctx.ForCode(t.Context(), activity{large: true})
	for ctx, ofCode := range map[context.Context]bool{worker: false, code: true} {
		if got := activityctx.InfoFrom(ctx); got != (activityctx.Info{Name: "charge"}) {
			t.Errorf("activity info is %+v", got)
		}
		if heartbeats(ctx) != ofCode || (tokenIn(ctx) == "secret") != ofCode ||
			activityctx.TakesLargePayloads(ctx) != ofCode {
			t.Errorf(
				"of the code %v: heartbeats %v, token %q, large payloads %v", ofCode, heartbeats(ctx), tokenIn(ctx),
				activityctx.TakesLargePayloads(ctx),
			)
		}
	}
}
