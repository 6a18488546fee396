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

type stock struct {
	Free int
	Held map[string]int // by order
}

var errSoldOut = errors.New("sold out")

func holdOne(_ *perdure.OrchestrationContext, s *stock, order string) (int, error) {
	if s.Free == 0 {
		return 0, errSoldOut
	}
	if s.Held == nil {
		s.Held = map[string]int{}
	}
	s.Free--
	s.Held[order]++
	return s.Free, nil
}

func refill(ctx *perdure.OrchestrationContext, s *stock, pieces int) (int, error) {
	got, err := perdure.CallActivity(ctx, bring, pieces).Await(ctx) // no other operation of the article begins meanwhile
	if err != nil {
		return 0, err
	}
	s.Free += got
	return s.Free, nil
}

func clearStock(_ *perdure.OrchestrationContext, s *stock, _ struct{}) (stock, error) { return *s, nil }

func addStock(r *perdure.Registry) {
	perdure.AddEntity(r, "stock", perdure.Operation("hold", holdOne), perdure.Operation("refill", refill),
		perdure.Operation("clear", clearStock, perdure.DeletesState()))
}

func bring(_ context.Context, pieces int) (int, error) { return pieces, nil }

func holdArticle(ctx *perdure.OrchestrationContext, article string) (string, error) {
	_, err := perdure.CallEntity[int](ctx, "stock", article, "hold", ctx.InstanceID()).Await(ctx)
	failed, told := errors.AsType[*perdure.CallUpdateError](err)
	switch {
	case err == nil:
		return "held", nil
	case told && failed.Cause != nil && failed.Cause.Message == errSoldOut.Error():
		return "sold out", nil
	default:
		return "", err
	}
}

func restock(ctx context.Context, hub *client.Client, article, delivery string, pieces int) (json.RawMessage, error) {
	return hub.CallEntity(ctx, "stock", article, "refill", pieces, client.WithUpdateID(delivery))
}

// dayReport makes a report of a day, which is asked for by many: it is made once.
func dayReport(ctx *perdure.OrchestrationContext, day string) (string, error) {
	return perdure.CallUpdate[string](ctx, "reports", "make", day, perdure.WithUpdateID(day), perdure.StartingWith("reports", 0)).Await(ctx)
}

func reports(ctx *perdure.OrchestrationContext, made int) (int, error) {
	err := perdure.HandleUpdate(ctx, "make", func(ctx *perdure.OrchestrationContext, day string) (string, error) {
		made++
		return strings.ToUpper(day), nil
	}, perdure.OneAtATime())
	if err == nil {
		_, err = perdure.WaitForExternalEvent[int](ctx, "close").Await(ctx)
	}
	return made, err
}

func entityEnv(t *testing.T) *perduretest.Env {
	t.Helper()
	r := perdure.NewRegistry()
	addStock(r)
	perdure.AddActivity(r, "bring", bring)
	perdure.AddOrchestration(r, "hold-article", holdArticle)
	perdure.AddOrchestration(r, "day-report", dayReport)
	perdure.AddOrchestration(r, "reports", reports)
	return perduretest.New(t, r)
}

func TestAStockIsHeldUntilItIsSoldOut(t *testing.T) {
	t.Parallel()
	env := entityEnv(t)
	for range 2 { // the delivery is told twice
		if left, err := restock(t.Context(), env.Client(), "tea", "delivery-1", 2); err != nil || string(left) != "2" {
			t.Fatalf("%s, %v", left, err)
		}
	}
	for _, want := range []string{"held", "held", "sold out"} {
		if got := run[string](t, env, "hold-article", "tea"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	state, err := env.Client().EntityState(t.Context(), "stock", "tea")
	if err != nil || !strings.HasPrefix(string(state), `{"Free":0,"Held":{"`) {
		t.Errorf("%s, %v", state, err)
	}
	if _, err := env.Client().CallEntity(t.Context(), "stock", "tea", "clear", struct{}{}); err != nil {
		t.Error(err)
	}
	if _, err := env.Client().EntityState(t.Context(), "stock", "tea"); !errors.Is(err, client.ErrNotFound) {
		t.Error(err)
	}
}

func TestAReportIsMadeOnce(t *testing.T) {
	t.Parallel()
	env := entityEnv(t)
	for range 2 {
		if got := run[string](t, env, "day-report", "monday"); got != "MONDAY" {
			t.Error(got)
		}
	}
	if err := env.Client().Raise(t.Context(), "reports", "close", 1); err != nil {
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
