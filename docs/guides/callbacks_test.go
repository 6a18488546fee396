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

// carrier takes requests, and answers them hours later.
type carrier struct {
	mu       sync.Mutex
	requests []string // the tokens, in order
}

func (c *carrier) request(_ context.Context, _, token string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, token)
	return nil
}

// last is the token of the last request.
func (c *carrier) last() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests[len(c.requests)-1]
}

// pickup asks the carrier to fetch an order. The carrier has the token, and says when.
func (c *carrier) pickup(ctx context.Context, order string) (time.Time, error) {
	if err := c.request(ctx, order, perdure.ActivityInfoFrom(ctx).Token); err != nil {
		return time.Time{}, err // nobody has the token: the policy tries again
	}
	return time.Time{}, perdure.ErrPending
}

func fetched(ctx *perdure.OrchestrationContext, order string) (string, error) {
	at, err := perdure.CallActivityByName[time.Time](ctx, "pickup", order,
		perdure.WithStartToClose(48*time.Hour),
		perdure.WithHeartbeatTimeout(6*time.Hour),
		perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 2, InitialInterval: time.Hour}),
	).Await(ctx)
	if err != nil {
		return "", err
	}
	return order + " is fetched on " + at.Weekday().String(), nil
}

// answer is what the carrier calls back with.
type answer struct {
	Token, Refused string
	At             time.Time
}

var errRefused = errors.New("the carrier refuses")

// called takes the carrier's answer.
func called(ctx context.Context, hub *client.Client, a answer) error {
	var err error
	if a.Refused != "" {
		err = hub.Fail(ctx, a.Token, perdure.NonRetryable(errors.Join(errRefused, errors.New(a.Refused))))
	} else {
		err = hub.Complete(ctx, a.Token, a.At)
	}
	if _, known := errors.AsType[*client.TokenError](err); known {
		return nil // it is answered, or another attempt was made, or nobody waits any more: nothing to repeat
	}
	return err
}

// alive says that the carrier is at it, and whether the order is still to be fetched.
func alive(ctx context.Context, hub *client.Client, token string) (wanted bool, err error) {
	cancel, err := hub.Heartbeat(ctx, token, nil)
	return err == nil && !cancel.Requested, err
}

func fetching(t *testing.T) (*perduretest.Env, *carrier) {
	t.Helper()
	c, r := &carrier{}, perdure.NewRegistry()
	perdure.AddActivity(r, "pickup", c.pickup)
	perdure.AddOrchestration(r, "fetched", fetched)
	return perduretest.New(t, r), c
}

func fetch(t *testing.T, env *perduretest.Env) string {
	t.Helper()
	id, err := env.Client().Start(t.Context(), "fetched", "order-7")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func waited(t *testing.T, env *perduretest.Env, id string) client.Status {
	t.Helper()
	s, err := env.Client().Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTheCarrierCallsBack(t *testing.T) {
	t.Parallel()
	env, c := fetching(t)
	id := fetch(t, env)
	env.Advance(5 * time.Hour)
	if wanted, err := alive(t.Context(), env.Client(), c.last()); err != nil || !wanted {
		t.Fatal(wanted, err)
	}
	env.Advance(5 * time.Hour)
	friday := time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)
	for range 2 { // the carrier may well call twice
		if err := called(t.Context(), env.Client(), answer{Token: c.last(), At: friday}); err != nil {
			t.Fatal(err)
		}
	}
	if s := waited(t, env, id); string(s.Output) != `"order-7 is fetched on Friday"` {
		t.Errorf("%+v", s)
	}
}

func TestTheCarrierRefuses(t *testing.T) {
	t.Parallel()
	env, c := fetching(t)
	id := fetch(t, env)
	env.Advance(time.Hour)
	if err := called(t.Context(), env.Client(), answer{Token: c.last(), Refused: "too large"}); err != nil {
		t.Fatal(err)
	}
	if s := waited(t, env, id); s.Failure == nil || !strings.Contains(s.Failure.Message, "too large") {
		t.Errorf("%+v", s)
	}
}

// Nobody calls: the heartbeat timeout ends the attempt, another request is made, and that is answered.
func TestTheCarrierIsAskedAgain(t *testing.T) {
	t.Parallel()
	env, c := fetching(t)
	id := fetch(t, env)
	env.Advance(time.Minute)
	first := c.last()
	env.Advance(8 * time.Hour)
	second := c.last()
	if first == second {
		t.Fatal("there was one request")
	}
	if _, err := alive(t.Context(), env.Client(), first); !isProblem(err, client.TokenSuperseded) {
		t.Errorf("%v", err)
	}
	if err := called(t.Context(), env.Client(), answer{Token: second, At: time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)}); err != nil {
		t.Fatal(err)
	}
	if s := waited(t, env, id); string(s.Output) != `"order-7 is fetched on Monday"` {
		t.Errorf("%+v", s)
	}
}

func isProblem(err error, want client.TokenProblem) bool {
	e, ok := errors.AsType[*client.TokenError](err)
	return ok && e.Problem == want
}
