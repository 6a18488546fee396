package guides_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

func versions() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "price", price)
	perdure.AddActivity(r, "label", label)
	perdure.AddOrchestration(r, "send", sendByPost) // version "0"
	perdure.AddOrchestration(r, "send", sendByCourier, perdure.WithVersion("1"))
	return r
}

func sendByPost(ctx *perdure.OrchestrationContext, parcel string) (string, error) {
	return perdure.CallActivity(ctx, label, parcel).Await(ctx)
}

func sendByCourier(ctx *perdure.OrchestrationContext, parcel string) (string, error) {
	if _, err := perdure.CallActivity(ctx, price, parcel).Await(ctx); err != nil {
		return "", err
	}
	return perdure.CallActivity(ctx, label, parcel+" by courier").Await(ctx)
}

func TestVersionsSideBySide(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, versions())
	for version, want := range map[string]string{"": "to a by courier", "0": "to a"} {
		id, err := env.Client().Start(t.Context(), "send", "a", client.WithVersion(version))
		if err != nil {
			t.Fatal(err)
		}
		s, err := env.Client().Wait(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := client.Result[string](s); err != nil || got != want {
			t.Errorf("version %q: %q, %v", version, got, err)
		}
	}
}

// parcelBefore is the code of before, parcelChanged that with the change, and parcelAfter what is left of it in the end.
func parcelBefore(ctx *perdure.OrchestrationContext, parcel string) (string, error) {
	if _, err := perdure.CallActivity(ctx, price, parcel).Await(ctx); err != nil {
		return "", err
	}
	if _, err := perdure.WaitForExternalEvent[struct{}](ctx, "paid").Await(ctx); err != nil {
		return "", err
	}
	return perdure.CallActivity(ctx, label, parcel).Await(ctx)
}

func parcelChanged(ctx *perdure.OrchestrationContext, parcel string) (string, error) {
	if perdure.Version(ctx, "no price for gifts", perdure.DefaultVersion, 1) == perdure.DefaultVersion || !isGift(parcel) {
		if _, err := perdure.CallActivity(ctx, price, parcel).Await(ctx); err != nil {
			return "", err
		}
	}
	if _, err := perdure.WaitForExternalEvent[struct{}](ctx, "paid").Await(ctx); err != nil {
		return "", err
	}
	return perdure.CallActivity(ctx, label, parcel).Await(ctx)
}

func parcelAfter(ctx *perdure.OrchestrationContext, parcel string) (string, error) {
	perdure.Version(ctx, "no price for gifts", 1, 1)
	if !isGift(parcel) {
		if _, err := perdure.CallActivity(ctx, price, parcel).Await(ctx); err != nil {
			return "", err
		}
	}
	if _, err := perdure.WaitForExternalEvent[struct{}](ctx, "paid").Await(ctx); err != nil {
		return "", err
	}
	return perdure.CallActivity(ctx, label, parcel).Await(ctx)
}

func isGift(parcel string) bool { return parcel == "a gift" }

func parcels(code func(*perdure.OrchestrationContext, string) (string, error)) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "price", price)
	perdure.AddActivity(r, "label", label)
	perdure.AddOrchestration(r, "parcel", code)
	return r
}

func TestAChangeReachesInstancesThatComeToIt(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, parcels(parcelBefore))
	c := env.Client()
	begin := func(id string) {
		if _, err := c.Start(t.Context(), "parcel", "a gift", client.WithInstanceID(id)); err != nil {
			t.Fatal(err)
		}
		env.RunUntilIdle()
	}
	begin("old")
	env.Deploy(parcels(parcelChanged))
	begin("new")
	for _, id := range []string{"old", "new"} {
		if err := c.Raise(t.Context(), id, "paid", struct{}{}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Wait(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if prices := env.Calls("price"); len(prices) != 1 || prices[0].InstanceID != "old" {
		t.Errorf("priced are %+v", prices)
	}
}

func TestCodeThatIsTakenAwayTooEarlySaysWhichIsMissing(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, parcels(parcelBefore))
	c := env.Client()
	if _, err := c.Start(t.Context(), "parcel", "a gift", client.WithInstanceID("old")); err != nil {
		t.Fatal(err)
	}
	env.RunUntilIdle()
	env.Deploy(parcels(parcelAfter))
	if err := c.Raise(t.Context(), "old", "paid", struct{}{}); err != nil {
		t.Fatal(err)
	}
	_, err := c.Wait(t.Context(), "old")
	idle, ok := errors.AsType[*perduretest.IdleError](err)
	if !ok || idle.Status != client.StatusBlocked || !strings.Contains(idle.Diagnosis.Got, "the code of before the change is gone: deploy a build that has it, with perdure.DefaultVersion as the least version") {
		t.Fatal(err)
	}

	env.Deploy(parcels(parcelChanged))
	if s, err := c.Wait(t.Context(), "old"); err != nil || s.Status != client.StatusCompleted {
		t.Errorf("%s, %v", s.Status, err)
	}
}

// testdata/parcel.json is the history of an instance that waits to be paid, as perdure history --json writes it.
func TestAHistoryOfBeforeTheChangeFitsIt(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, parcels(parcelBefore))
	if _, err := env.Client().Start(t.Context(), "parcel", "a gift", client.WithInstanceID("old")); err != nil {
		t.Fatal(err)
	}
	env.RunUntilIdle()
	env.Golden("old", "testdata/parcel.json")
	before, err := os.ReadFile("testdata/parcel.json")
	if err != nil {
		t.Fatal(err)
	}
	perduretest.Replay(t, parcels(parcelChanged), before)
}
