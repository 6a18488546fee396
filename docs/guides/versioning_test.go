package guides_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

func versionedRegistry() *perdure.Registry {
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

func TestWithVersion_startWithAndWithoutVersion_runsThatVersion(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, versionedRegistry())
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

// parcelV0 is the original code. parcelV0V1 supports both versions of the change, parcelV1 only the new one.
func parcelV0(ctx *perdure.OrchestrationContext, parcel string) (string, error) {
	if _, err := perdure.CallActivity(ctx, price, parcel).Await(ctx); err != nil {
		return "", err
	}
	if _, err := perdure.WaitForExternalEvent[struct{}](ctx, "paid").Await(ctx); err != nil {
		return "", err
	}
	return perdure.CallActivity(ctx, label, parcel).Await(ctx)
}

func parcelV0V1(ctx *perdure.OrchestrationContext, parcel string) (string, error) {
	if perdure.Version(ctx, "free gifts", perdure.DefaultVersion, 1) == perdure.DefaultVersion || !isGift(parcel) {
		if _, err := perdure.CallActivity(ctx, price, parcel).Await(ctx); err != nil {
			return "", err
		}
	}
	if _, err := perdure.WaitForExternalEvent[struct{}](ctx, "paid").Await(ctx); err != nil {
		return "", err
	}
	return perdure.CallActivity(ctx, label, parcel).Await(ctx)
}

func parcelV1(ctx *perdure.OrchestrationContext, parcel string) (string, error) {
	perdure.Version(ctx, "free gifts", 1, 1)
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

// parcelV2 withdraws the change: only executions with version 1 use its code.
func parcelV2(ctx *perdure.OrchestrationContext, parcel string) (string, error) {
	if perdure.Version(ctx, "free gifts", perdure.DefaultVersion, 2) != 1 || !isGift(parcel) {
		if _, err := perdure.CallActivity(ctx, price, parcel).Await(ctx); err != nil {
			return "", err
		}
	}
	if _, err := perdure.WaitForExternalEvent[struct{}](ctx, "paid").Await(ctx); err != nil {
		return "", err
	}
	return perdure.CallActivity(ctx, label, parcel).Await(ctx)
}

// parcelIncompatible makes the change without Version.
func parcelIncompatible(ctx *perdure.OrchestrationContext, parcel string) (string, error) {
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

// changeTime is the time of the change in parcelByTime: noon of the first day of virtual time.
var changeTime = time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC)

// parcelByTime chooses the old or new code by the time at which an execution reaches the change.
func parcelByTime(ctx *perdure.OrchestrationContext, parcel string) (string, error) {
	if ctx.Now().Before(changeTime) || !isGift(parcel) {
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

func registryOf(code func(*perdure.OrchestrationContext, string) (string, error)) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "price", price)
	perdure.AddActivity(r, "label", label)
	perdure.AddOrchestration(r, "parcel", code)
	return r
}

func TestVersion_runningAndNewInstance_takeOldAndNewCode(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, registryOf(parcelV0))
	c := env.Client()
	start := func(id string) {
		if _, err := c.Start(t.Context(), "parcel", "a gift", client.WithInstanceID(id)); err != nil {
			t.Fatal(err)
		}
		env.RunUntilIdle()
	}
	start("old")
	env.Deploy(registryOf(parcelV0V1))
	start("new")
	for _, id := range []string{"old", "new"} {
		if err := c.RaiseEvent(t.Context(), id, "paid", struct{}{}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Wait(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if prices := env.Calls("price"); len(prices) != 1 || prices[0].InstanceID != "old" {
		t.Errorf("price calls: %+v", prices)
	}
}

func TestVersion_oldCodeRemovedTooEarly_blocksUntilRestored(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, registryOf(parcelV0))
	c := env.Client()
	if _, err := c.Start(t.Context(), "parcel", "a gift", client.WithInstanceID("old")); err != nil {
		t.Fatal(err)
	}
	env.RunUntilIdle()
	env.Deploy(registryOf(parcelV1))
	if err := c.RaiseEvent(t.Context(), "old", "paid", struct{}{}); err != nil {
		t.Fatal(err)
	}
	_, err := c.Wait(t.Context(), "old")
	idle, ok := errors.AsType[*perduretest.IdleError](err)
	if !ok || idle.Status != client.StatusBlocked || !strings.Contains(idle.Diagnosis.Got,
		"the code before the change is missing: deploy a build that contains it, "+
			"with perdure.DefaultVersion as minVersion") {
		t.Fatal(err)
	}

	env.Deploy(registryOf(parcelV0V1))
	if s, err := c.Wait(t.Context(), "old"); err != nil || s.Status != client.StatusCompleted {
		t.Errorf("%s, %v", s.Status, err)
	}
}

// Both instances wait at calls behind the place of the change. The old build blocks the instance with version 1.
func TestVersion_changeRolledBack_instancesContinueWithTheirVersions(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, registryOf(parcelV0))
	c := env.Client()
	startParcel(t, env, "old")
	env.Deploy(registryOf(parcelV0V1))
	startParcel(t, env, "changed")
	env.Deploy(registryOf(parcelV0))
	if err := c.RaiseEvent(t.Context(), "changed", "paid", struct{}{}); err != nil {
		t.Fatal(err)
	}
	wantBlocked(t, env, "changed")

	env.Advance(time.Minute) // so that this build is the last one to report
	env.Deploy(registryOf(parcelV2))
	startParcel(t, env, "new")
	for _, id := range []string{"old", "new"} {
		if err := c.RaiseEvent(t.Context(), id, "paid", struct{}{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"old", "changed", "new"} {
		if s, err := c.Wait(t.Context(), id); err != nil || s.Status != client.StatusCompleted {
			t.Errorf("%s: %s, %v", id, s.Status, err)
		}
	}
	if prices := env.Calls("price"); len(prices) != 2 || prices[0].InstanceID != "old" ||
		prices[1].InstanceID != "new" {
		t.Errorf("price calls: %+v", prices)
	}
}

// An incompatible change is deployed at noon. It blocks the instance of the old build, a rollback would block the
// instance of the new one, and only code that chooses by time continues both.
func TestNow_instancesOfTwoIncompatibleBuilds_bothComplete(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, registryOf(parcelV0))
	c := env.Client()
	startParcel(t, env, "old")
	env.Advance(12 * time.Hour)
	env.Deploy(registryOf(parcelIncompatible))
	startParcel(t, env, "new")
	if err := c.RaiseEvent(t.Context(), "old", "paid", struct{}{}); err != nil {
		t.Fatal(err)
	}
	wantBlocked(t, env, "old")

	env.Deploy(registryOf(parcelV0))
	if err := c.RaiseEvent(t.Context(), "new", "paid", struct{}{}); err != nil {
		t.Fatal(err)
	}
	wantBlocked(t, env, "new")
	env.Deploy(registryOf(parcelV0V1)) // too late: no instance of the two builds has a recorded version
	wantBlocked(t, env, "new")

	env.Advance(time.Minute) // so that this build reports last
	env.Deploy(registryOf(parcelByTime))
	for _, id := range []string{"old", "new"} {
		if s, err := c.Wait(t.Context(), id); err != nil || s.Status != client.StatusCompleted {
			t.Errorf("%s: %s, %v", id, s.Status, err)
		}
	}
	if prices := env.Calls("price"); len(prices) != 1 || prices[0].InstanceID != "old" {
		t.Errorf("price calls: %+v", prices)
	}
}

// While two builds alternate, as with Canary, both can process every history until the time of the change.
func TestNow_buildsAlternateBeforeChange_blockNothing(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, registryOf(parcelByTime))
	c := env.Client()
	startParcel(t, env, "before")
	env.Deploy(registryOf(parcelV0))
	if err := c.RaiseEvent(t.Context(), "before", "paid", struct{}{}); err != nil {
		t.Fatal(err)
	}
	if s, err := c.Wait(t.Context(), "before"); err != nil || s.Status != client.StatusCompleted {
		t.Errorf("%s, %v", s.Status, err)
	}

	env.Deploy(registryOf(parcelByTime))
	env.Advance(12 * time.Hour)
	startParcel(t, env, "after")
	if prices := env.Calls("price"); len(prices) != 1 || prices[0].InstanceID != "before" {
		t.Errorf("price calls: %+v", prices)
	}
}

func startParcel(t *testing.T, env *perduretest.Env, id string) {
	t.Helper()
	if _, err := env.Client().Start(t.Context(), "parcel", "a gift", client.WithInstanceID(id)); err != nil {
		t.Fatal(err)
	}
	env.RunUntilIdle()
}

func wantBlocked(t *testing.T, env *perduretest.Env, id string) {
	t.Helper()
	_, err := env.Client().Wait(t.Context(), id)
	if idle, ok := errors.AsType[*perduretest.IdleError](err); !ok || idle.Status != client.StatusBlocked {
		t.Fatalf("%s: %v, want a blocked instance", id, err)
	}
}

// testdata/parcel.json is the history of an instance that waits for the event "paid".
func TestReplay_historyBeforeChange_matchesChangedCode(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, registryOf(parcelV0))
	if _, err := env.Client().Start(t.Context(), "parcel", "a gift", client.WithInstanceID("old")); err != nil {
		t.Fatal(err)
	}
	env.RunUntilIdle()
	env.CompareGolden("old", "testdata/parcel.json")

	recorded, err := os.ReadFile("testdata/parcel.json")
	if err != nil {
		t.Fatal(err)
	}
	perduretest.Replay(t, registryOf(parcelV0V1), recorded)
}
