package guides_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

// Stock is the state of an entity: one article in a warehouse.
type Stock struct {
	Available int
	Reserved  map[string]int // by order
}

var errSoldOut = errors.New("sold out")

func reserve(_ *perdure.OrchestrationContext, s *Stock, order string) (int, error) {
	if s.Available == 0 {
		return 0, errSoldOut
	}
	if s.Reserved == nil {
		s.Reserved = map[string]int{}
	}
	s.Available--
	s.Reserved[order]++
	return s.Available, nil
}

func refill(ctx *perdure.OrchestrationContext, s *Stock, pieces int) (int, error) {
	// no other operation of this article runs during the wait
	delivered, err := perdure.CallActivity(ctx, deliverPieces, pieces).Await(ctx)
	if err != nil {
		return 0, err
	}
	s.Available += delivered
	return s.Available, nil
}

func clearStock(_ *perdure.OrchestrationContext, s *Stock, _ struct{}) (Stock, error) { return *s, nil }

func addStockEntity(r *perdure.Registry) {
	perdure.AddEntity(r, "stock", perdure.Operation("reserve", reserve), perdure.Operation("refill", refill),
		perdure.Operation("clear", clearStock, perdure.DeleteState()))
}

func deliverPieces(_ context.Context, pieces int) (int, error) { return pieces, nil }

func reserveArticle(ctx *perdure.OrchestrationContext, article string) (string, error) {
	_, err := perdure.CallEntity[int](ctx, "stock", article, "reserve", ctx.InstanceID()).Await(ctx)
	failed, ok := errors.AsType[*perdure.CallUpdateError](err)
	switch {
	case err == nil:
		return "reserved", nil
	case ok && failed.Cause != nil && failed.Cause.Message == errSoldOut.Error():
		return "sold out", nil
	default:
		return "", err
	}
}

func restock(ctx context.Context, hub *client.Client, article, deliveryID string, pieces int) (json.RawMessage, error) {
	return hub.CallEntity(ctx, "stock", article, "refill", pieces, client.WithUpdateID(deliveryID))
}

// dayReport returns the report of a day. All callers share one computation.
func dayReport(ctx *perdure.OrchestrationContext, day string) (string, error) {
	return perdure.CallUpdate[string](ctx, "reports", "make", day,
		perdure.WithUpdateID(day),
		perdure.WithStart("reports", 0),
	).Await(ctx)
}

func reports(ctx *perdure.OrchestrationContext, made int) (int, error) {
	err := perdure.SetUpdateHandler(ctx, "make", func(ctx *perdure.OrchestrationContext, day string) (string, error) {
		made++
		return strings.ToUpper(day), nil
	}, perdure.Serialized())
	if err == nil {
		_, err = perdure.WaitForExternalEvent[int](ctx, "close").Await(ctx)
	}
	return made, err
}

func newEntityEnv(t *testing.T) *perduretest.Env {
	t.Helper()
	r := perdure.NewRegistry()
	addStockEntity(r)
	perdure.AddActivity(r, "deliver-pieces", deliverPieces)
	perdure.AddOrchestration(r, "reserve-article", reserveArticle)
	perdure.AddOrchestration(r, "day-report", dayReport)
	perdure.AddOrchestration(r, "reports", reports)
	return perduretest.New(t, r)
}

func TestEntity_reserveUntilSoldOut_keepsState(t *testing.T) {
	t.Parallel()
	env := newEntityEnv(t)
	for range 2 { // the delivery is reported twice
		if left, err := restock(t.Context(), env.Client(), "tea", "delivery-1", 2); err != nil || string(left) != "2" {
			t.Fatalf("%s, %v", left, err)
		}
	}
	for _, want := range []string{"reserved", "reserved", "sold out"} {
		if got := run[string](t, env, "reserve-article", "tea"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	state, err := env.Client().EntityState(t.Context(), "stock", "tea")
	if err != nil || !strings.HasPrefix(string(state), `{"Available":0,"Reserved":{"`) {
		t.Errorf("%s, %v", state, err)
	}
	if _, err := env.Client().CallEntity(t.Context(), "stock", "tea", "clear", struct{}{}); err != nil {
		t.Error(err)
	}
	if _, err := env.Client().EntityState(t.Context(), "stock", "tea"); !errors.Is(err, client.ErrNotFound) {
		t.Error(err)
	}
}

func TestCallUpdate_sameUpdateID_runsOnce(t *testing.T) {
	t.Parallel()
	env := newEntityEnv(t)
	for range 2 {
		if got := run[string](t, env, "day-report", "monday"); got != "MONDAY" {
			t.Error(got)
		}
	}
	if err := env.Client().RaiseEvent(t.Context(), "reports", "close", 1); err != nil {
		t.Fatal(err)
	}
	s, err := env.Client().Wait(t.Context(), "reports")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := client.Result[int](s); err != nil || n != 1 {
		t.Errorf("made %d, %v", n, err)
	}
}
