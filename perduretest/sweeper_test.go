package perduretest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/provider/dynamo"
)

// A message that fails during a day of outage becomes a dead letter. The sweeper recovers it after the outage.
func TestOutage_longerThanAMessageIsRetried_instanceContinues(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, registry())
	id := start(t, env, "sleep", time.Hour)
	env.Advance(time.Minute)
	env.Outage(perduretest.DynamoDB, aDay)
	env.Advance(aDay)
	after := env.Now()
	if got := result(t, env, id); got != "slept" {
		t.Errorf("got %q", got)
	}
	if late := env.Now().Sub(after); late > 4*time.Minute {
		t.Errorf("recovery: got %v after the outage", late)
	}
}

// Dead letters of an outage are recovered once, so that an unregistered activity does not keep the hub busy.
func TestOutage_unregisteredActivity_isIdleInTheEnd(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, registry())
	id := start(t, env, "stuck", nil)
	env.Advance(time.Minute)
	env.Outage(perduretest.DynamoDB, aDay)
	env.Advance(aDay)
	_, err := env.Client().Wait(t.Context(), id)
	if idle, ok := errors.AsType[*perduretest.IdleError](err); !ok || idle.LoopDiagnosis != "" ||
		!strings.Contains(err.Error(), "which is not registered") {
		t.Errorf("got error %v", err)
	}
}

// A client creates an instance and cannot send its first message. The hub starts the instance within minutes.
func TestStart_messageIsNotSent_startsWithinMinutes(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, registry())
	env.Outage(perduretest.SQS, time.Minute)
	if _, err := env.Client().Start(t.Context(), "sleep", time.Second, client.WithInstanceID("lost")); err == nil {
		t.Fatal("start without SQS: got no error")
	}
	env.Advance(5 * time.Minute)
	if got := statusOf(t, env, "lost"); got != client.StatusCompleted {
		t.Errorf("after five minutes: got status %q", got)
	}
}

// A process commits a start with its own data, and dies before Wake.
func TestPrepareStart_processDiesBeforeWake_startsWithinMinutes(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]time.Duration{"at once": 0, "prepared an hour before": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := perduretest.New(t, registry(), perduretest.WithTable("orders", "id", ""))
			tables := perduretest.TableClient(env)
			start, err := env.Client().PrepareStart(t.Context(), "sleep", time.Second, client.WithInstanceID("o-1"))
			if err != nil {
				t.Fatal(err)
			}
			env.Advance(early)
			if _, err := tables.TransactWriteItems(t.Context(),
				&dynamodb.TransactWriteItemsInput{TransactItems: dynamo.TransactItems(start)}); err != nil {
				t.Fatal(err)
			}
			env.Advance(5 * time.Minute)
			if got := statusOf(t, env, "o-1"); got != client.StatusCompleted {
				t.Errorf("after five minutes: got status %q", got)
			}
		})
	}
}

// An activity purges an instance with many executions, and its process crashes at any call of the deletion.
func TestPurge_processDiesInIt_finishesWithinMinutes(t *testing.T) {
	t.Parallel()
	for n := range 12 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			var env *perduretest.Env
			var requested time.Time
			r := keepers()
			perdure.AddActivity(r, "purge", func(ctx context.Context, id string) (string, error) {
				if requested.IsZero() {
					requested = time.Now()
					env.CrashAt(n + 1)
				}
				return "", env.Client().Purge(ctx, id, client.Force())
			})
			perdure.AddOrchestration(r, "purges", func(ctx *perdure.OrchestrationContext, id string) (string, error) {
				return perdure.CallActivityByName[string](ctx, "purge", id).Await(ctx)
			})
			env = perduretest.New(t, r)
			id := start(t, env, "daily", 0)
			env.Advance(4 * aDay)
			start(t, env, "purges", id)
			env.Advance(time.Second)
			begun := statusOf(t, env, id) == client.StatusDeleting
			env.Advance(6 * time.Minute) // the activity is redelivered after 15 minutes
			if got := statusOf(t, env, id); begun && got != "" {
				t.Errorf("crash at call %d: got status %q after six minutes", n+1, got)
			}
			t.Logf("crash at call %d: started %t", n+1, begun)
		})
	}
}
