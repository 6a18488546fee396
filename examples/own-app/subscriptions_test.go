package subscriptions_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"

	"example.com/subscriptions"
)

// world implements Bank and Mail and records the calls.
type world struct {
	lock     sync.Mutex
	declines bool
	charged  map[string]int64
	sent     []string
}

func (w *world) Charge(_ context.Context, key string, cents int64) (string, error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.declines {
		return "", perdure.NonRetryable(errors.New("the card is declined"))
	}
	w.charged[key] = cents
	return "payment of " + key, nil
}

func (w *world) Send(_ context.Context, to, text string) error {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.sent = append(w.sent, to+": "+text)
	return nil
}

// subscribed starts a subscription and runs it until it waits for the end of the first month or has ended.
func subscribed(t *testing.T, w *world) *perduretest.Env {
	t.Helper()
	env := perduretest.New(t, subscriptions.Registry(w, w))
	_, err := env.Client().Start(t.Context(), "subscribe", subscriptions.Subscription{Customer: "ada", Cents: 900},
		client.WithInstanceID("ada"))
	if err != nil {
		t.Fatal(err)
	}
	env.RunUntilIdle()
	return env
}

func TestSubscribe_severalMonths_chargesEachMonthOnce(t *testing.T) {
	t.Parallel()
	w := &world{charged: map[string]int64{}}
	env := subscribed(t, w)
	for range 2 {
		env.Advance(30 * 24 * time.Hour)
	}
	if err := env.Client().RaiseEvent(t.Context(), "ada", subscriptions.EventEnded, nil); err != nil {
		t.Fatal(err)
	}
	status, err := env.Client().Wait(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	got, err := client.Result[subscriptions.Subscription](status)
	if err != nil || got.Paid != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	if len(w.charged) != 3 || w.charged["ada/2"] != 900 ||
		!slices.Equal(w.sent, []string{"ada: goodbye after 3 months"}) {
		t.Errorf("charged %v, sent %v", w.charged, w.sent)
	}
}

func TestSubscribe_declinedCard_fails(t *testing.T) {
	t.Parallel()
	w := &world{declines: true}
	env := subscribed(t, w)
	status, err := env.Client().Wait(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	if status.Status != client.StatusFailed || !slices.Equal(w.sent, []string{"ada: we could not charge your card"}) {
		t.Errorf("%s, sent %v", status.Status, w.sent)
	}
}
