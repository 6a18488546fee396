package perdure_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/activityctx"
	"github.com/perdure/perdure/perduretest"
)

// heart records heartbeats.
type heart struct {
	last       json.RawMessage
	heartbeats []string
	errs       []error
}

func (h *heart) Record(details json.RawMessage, err error) {
	h.heartbeats, h.errs = append(h.heartbeats, string(details)), append(h.errs, err)
}

func (h *heart) LastDetails() json.RawMessage { return h.last }

type progress struct{ Row int }

func TestHeartbeat_outsideWorker_doesNothing(t *testing.T) {
	t.Parallel()
	perdure.Heartbeat(t.Context(), progress{1})
	perdure.Heartbeat(t.Context(), func() {})
	if p, ok := perdure.HeartbeatDetails[progress](t.Context()); ok || p.Row != 0 {
		t.Errorf("got %+v, %v", p, ok)
	}
}

func TestHeartbeat_details_areRecordedAsJSON(t *testing.T) {
	t.Parallel()
	h := &heart{}
	ctx := activityctx.WithInfo(activityctx.WithHeartbeats(t.Context(), h), &activityctx.Info{Name: "import"})
	for _, details := range []any{progress{7}, nil, (*progress)(nil), 3} {
		perdure.Heartbeat(ctx, details)
	}
	if got := strings.Join(h.heartbeats, "|"); got != `{"Row":7}|||3` || errors.Join(h.errs...) != nil {
		t.Errorf("got %s, errors %v", got, h.errs)
	}
	perdure.Heartbeat(ctx, strings.Repeat("x", perdure.MaxPayloadBytes-2))
	perdure.Heartbeat(ctx, strings.Repeat("x", perdure.MaxPayloadBytes-1))
	perdure.Heartbeat(ctx, func() {})
	var large *perdure.PayloadTooLargeError
	if h.errs[4] != nil || !errors.As(h.errs[5], &large) || large.Name != `heartbeat details of activity "import"` ||
		h.errs[6] == nil || h.heartbeats[5]+h.heartbeats[6] != "" {
		t.Errorf("got errors %v", h.errs)
	}
}

func TestHeartbeatDetails_earlierAttempt_returnsItsLastDetails(t *testing.T) {
	t.Parallel()
	for left, want := range map[string]struct {
		row int
		ok  bool
	}{`{"Row":7}`: {7, true}, ``: {0, false}, `{"Row":"seven"}`: {0, false}, `[`: {0, false}} {
		ctx := activityctx.WithHeartbeats(t.Context(), &heart{last: json.RawMessage(left)})
		perdure.Heartbeat(ctx, progress{8}) // for the next attempt
		if p, ok := perdure.HeartbeatDetails[progress](ctx); p.Row != want.row || ok != want.ok {
			t.Errorf("details %q: got %+v, %v", left, p, ok)
		}
	}
}

func TestActivityTimeouts_anyDuration_areRecordedInMilliseconds(t *testing.T) {
	t.Parallel()
	const tenYears = 10 * 365 * 24 * 3600 * 1000
	for d, want := range map[time.Duration]int64{
		time.Minute: 60_000, 1500 * time.Microsecond: 2, 0: 1, -time.Hour: 1, math.MaxInt64: tenYears, math.MinInt64: 1,
	} {
		w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			return perdure.CallActivity(ctx, inc, 1, perdure.WithHeartbeatTimeout(d),
				perdure.WithScheduleToCloseTimeout(d), perdure.WithStartToCloseTimeout(d)).Await(ctx)
		})
		if ev := w.history[2]; ev.HeartbeatMs != want || ev.ScheduleToCloseMs != want || ev.StartToCloseMs != want {
			t.Errorf("%v: got %+v, want %d ms", d, ev, want)
		}
	}
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return perdure.CallActivity(ctx, inc, 1).Await(ctx)
	})
	if ev := w.history[2]; ev.HeartbeatMs != 0 || ev.ScheduleToCloseMs != 0 {
		t.Errorf("no limits: got %+v", ev)
	}
}

// The code of a running instance may change the timeouts. The recorded timeouts stay in effect.
func TestActivityTimeouts_changedCode_areNotComparedOnReplay(t *testing.T) {
	t.Parallel()
	limit := time.Minute
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "inc", inc)
	perdure.AddOrchestration(r, "o", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return perdure.CallActivity(ctx, inc, 1, perdure.WithHeartbeatTimeout(limit),
			perdure.WithScheduleToCloseTimeout(limit)).Await(ctx)
	})
	w := newWorld(t, r).start("o", 1).run()
	limit = time.Hour
	if got := w.replayed().output(); got != "2" {
		t.Error(got)
	}
}

func importRows(ctx context.Context, rows int) (int, error) {
	last, _ := perdure.HeartbeatDetails[progress](ctx)
	for row := last.Row; row < rows; row++ {
		perdure.Heartbeat(ctx, progress{row + 1})
	}
	return rows - last.Row, ctx.Err()
}

// A test can call an activity with heartbeats as a plain function, and can choose the details at which it starts.
func TestHeartbeat_activityCalledDirectly_resumesFromLastDetails(t *testing.T) {
	t.Parallel()
	if n, err := importRows(t.Context(), 10); n != 10 || err != nil {
		t.Errorf("got %d, error %v", n, err)
	}
	if n, err := importRows(perduretest.ContextWithHeartbeatRecorder(t.Context(),
		&heart{last: json.RawMessage(`{"Row":6}`)}), 10); n != 4 || err != nil {
		t.Errorf("got %d, error %v", n, err)
	}
}
