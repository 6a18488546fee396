package guides_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

// carrier is a client of a carrier that responds to requests hours later.
type carrier struct {
	mu     sync.Mutex
	tokens []string // of all requests, in order
}

func (c *carrier) request(_ context.Context, _, token string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens = append(c.tokens, token)
	return nil
}

// lastToken returns the token of the last request.
func (c *carrier) lastToken() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tokens[len(c.tokens)-1]
}

// Pickup requests a pickup. The carrier completes it later, with the token.
func (c *carrier) Pickup(ctx context.Context, order string) (time.Time, error) {
	if err := c.request(ctx, order, perdure.ActivityInfoFrom(ctx).CompletionToken); err != nil {
		return time.Time{}, err // the retry policy applies
	}
	return time.Time{}, perdure.ErrPending
}

func awaitPickup(ctx *perdure.OrchestrationContext, order string) (string, error) {
	at, err := perdure.CallActivityByName[time.Time](ctx, "pickup", order,
		perdure.WithStartToCloseTimeout(48*time.Hour),
		perdure.WithHeartbeatTimeout(6*time.Hour),
		perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 2, InitialInterval: time.Hour}),
	).Await(ctx)
	if err != nil {
		return "", err
	}
	return order + " is picked up on " + at.Weekday().String(), nil
}

// Callback is the carrier's response.
type Callback struct {
	Token, Rejection string
	PickupTime       time.Time
}

var errRejected = errors.New("the carrier rejected the pickup")

// handleCallback completes the activity. It can be called twice.
func handleCallback(ctx context.Context, hub *client.Client, c Callback) error {
	var err error
	if c.Rejection != "" {
		err = hub.FailActivity(ctx, c.Token, perdure.NonRetryable(errors.Join(errRejected, errors.New(c.Rejection))))
	} else {
		err = hub.CompleteActivity(ctx, c.Token, c.PickupTime)
	}
	if _, ended := errors.AsType[*client.TokenError](err); ended {
		return nil // completed before, superseded, or no longer needed
	}
	return err
}

// heartbeat reports progress and returns whether the activity is still wanted.
func heartbeat(ctx context.Context, hub *client.Client, token string) (wanted bool, err error) {
	cancel, err := hub.HeartbeatActivity(ctx, token, nil)
	return err == nil && !cancel.Requested, err
}

func newCarrierEnv(t *testing.T) (*perduretest.Env, *carrier) {
	t.Helper()
	c, r := &carrier{}, perdure.NewRegistry()
	perdure.AddActivity(r, "pickup", c.Pickup)
	perdure.AddOrchestration(r, "await-pickup", awaitPickup)
	return perduretest.New(t, r), c
}

func startPickup(t *testing.T, env *perduretest.Env) string {
	t.Helper()
	id, err := env.Client().Start(t.Context(), "await-pickup", "order-7")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func waitStatus(t *testing.T, env *perduretest.Env, id string) client.Status {
	t.Helper()
	s, err := env.Client().Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestComplete_calledTwice_completesOnce(t *testing.T) {
	t.Parallel()
	env, c := newCarrierEnv(t)
	id := startPickup(t, env)
	env.Advance(5 * time.Hour)
	if wanted, err := heartbeat(t.Context(), env.Client(), c.lastToken()); err != nil || !wanted {
		t.Fatal(wanted, err)
	}
	env.Advance(5 * time.Hour)
	friday := time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)
	for range 2 { // the carrier may call twice
		callback := Callback{Token: c.lastToken(), PickupTime: friday}
		if err := handleCallback(t.Context(), env.Client(), callback); err != nil {
			t.Fatal(err)
		}
	}
	if s := waitStatus(t, env, id); string(s.Output) != `"order-7 is picked up on Friday"` {
		t.Errorf("%+v", s)
	}
}

func TestFail_nonRetryable_failsInstance(t *testing.T) {
	t.Parallel()
	env, c := newCarrierEnv(t)
	id := startPickup(t, env)
	env.Advance(time.Hour)
	callback := Callback{Token: c.lastToken(), Rejection: "too large"}
	if err := handleCallback(t.Context(), env.Client(), callback); err != nil {
		t.Fatal(err)
	}
	if s := waitStatus(t, env, id); s.Failure == nil || !strings.Contains(s.Failure.Message, "too large") {
		t.Errorf("%+v", s)
	}
}

// The first attempt ends with its heartbeat timeout, and the second one is completed.
func TestComplete_afterHeartbeatTimeout_completesNextAttempt(t *testing.T) {
	t.Parallel()
	env, c := newCarrierEnv(t)
	id := startPickup(t, env)
	env.Advance(time.Minute)
	first := c.lastToken()
	env.Advance(8 * time.Hour)
	second := c.lastToken()
	if first == second {
		t.Fatal("there was no second request")
	}
	if _, err := heartbeat(t.Context(), env.Client(), first); !isTokenProblem(err, client.TokenSuperseded) {
		t.Errorf("%v", err)
	}
	callback := Callback{Token: second, PickupTime: time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)}
	if err := handleCallback(t.Context(), env.Client(), callback); err != nil {
		t.Fatal(err)
	}
	if s := waitStatus(t, env, id); string(s.Output) != `"order-7 is picked up on Monday"` {
		t.Errorf("%+v", s)
	}
}

func isTokenProblem(err error, want client.TokenErrorReason) bool {
	e, ok := errors.AsType[*client.TokenError](err)
	return ok && e.Reason == want
}
