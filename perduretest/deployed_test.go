package perduretest_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// served returns a hub that runs in real time, like a deployed one, until the test ends.
func served(t *testing.T, r *perdure.Registry) *simhub.Hub {
	t.Helper()
	hub, err := simhub.New(simhub.Options{Registry: r})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		hub.Cloud.Serve(ctx)
	}()
	t.Cleanup(func() {
		hub.Close()
		stop()
		<-over
	})
	return hub
}

// approve is the body of a test for a hub in virtual time and for a deployed hub.
func approve(t *testing.T, env *perduretest.Env) (id string) {
	t.Helper()
	id = start(t, env, "approve", nil)
	env.AfterFunc(20*time.Millisecond, func() { raise(t, env, id, "go", 1) })
	if got := result(t, env, id); got != "v1" {
		t.Errorf("got %q", got)
	}
	if len(env.History(id)) == 0 {
		t.Error("got an empty history")
	}
	return id
}

func TestNewDeployed_sameTestBody_passesAndDeletesItsInstances(t *testing.T) {
	t.Parallel()
	t.Run("virtual", func(t *testing.T) { approve(t, perduretest.New(t, approved("v1"))) })
	hub := served(t, approved("v1"))
	ids := []string{}
	t.Run("deployed", func(t *testing.T) {
		env := perduretest.NewDeployed(t, hub.Provider)
		ids = append(ids, approve(t, env), start(t, env, "approve", nil))
		began := env.Now()
		env.Advance(10 * time.Millisecond)
		if took := env.Now().Sub(began); took < 10*time.Millisecond {
			t.Errorf("got a clock advanced by %v", took)
		}
	})
	for _, id := range ids { // one had ended, the other waited
		if _, err := client.New(hub.Provider).Status(t.Context(), id); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("the test did not delete %s: got error %v", id, err)
		}
	}
}

func TestNewDeployed_waitTimesOut_namesTheAwaitedEvent(t *testing.T) {
	t.Parallel()
	env := perduretest.NewDeployed(t, served(t, approved("v1")).Provider, perduretest.WithHangTimeout(time.Second))
	_, err := env.Client().Wait(t.Context(), start(t, env, "approve", nil))
	idle, ok := errors.AsType[*perduretest.IdleError](err)
	if !ok || idle.Waited == 0 || len(idle.WaitingFor) != 1 ||
		!strings.Contains(idle.WaitingFor[0], `external event "go", which was not raised`) {
		t.Errorf("got error %v", err)
	}
}

// respondWith is a hub whose functions run queries, like a deployed hub.
type respondWith struct {
	*dynamo.Provider

	hub *simhub.Hub
}

func (a respondWith) QueryInstance(ctx context.Context, q provider.QueryRequest) (json.RawMessage, error) {
	return a.hub.QueryInstance(ctx, q)
}

// The Client of a deployed hub behaves like any client of the hub.
func TestNewDeployed_optionalInterfacesOfTheHub_areSupported(t *testing.T) {
	t.Parallel()
	r := approved("v1")
	perdure.AddOrchestration(r, "knows", func(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
		if err := perdure.SetQueryHandler(ctx, "answer", func(struct{}) (int, error) { return 7, nil }); err != nil {
			return "", err
		}
		return perdure.WaitForExternalEvent[string](ctx, "go").Await(ctx)
	})
	hub := served(t, r)
	whole := respondWith{hub.Provider, hub}
	id := ""
	t.Run("in a test", func(t *testing.T) {
		env := perduretest.NewDeployed(t, whole)
		c := env.Client()
		requested := start(t, env, "knows", nil)
		if _, err := c.WaitForStart(t.Context(), requested); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Query(t.Context(), requested, "answer", nil); err != nil || string(got) != "7" {
			t.Errorf("query: got %s, error %v", got, err)
		}
		prepared, err := c.PrepareStart(t.Context(), "approve", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := hub.Cloud.Table.TransactWriteItems(t.Context(),
			&dynamodb.TransactWriteItemsInput{TransactItems: dynamo.TransactItems(prepared)}); err != nil {
			t.Fatal(err)
		}
		id = prepared.InstanceID()
		if _, err := c.PrepareStart(t.Context(), "approve", nil); err != nil { // never committed
			t.Error(err)
		}
		if _, err := env.Admin().DeadLetters(t.Context(), admin.DeadLetterQuery{}, 0); err != nil {
			t.Errorf("dead letters: got error %v", err)
		}
		if _, err := env.Admin().Reconcile(t.Context(),
			admin.ReconcileOptions{Instances: []string{requested}}); err != nil {
			t.Errorf("reconcile: got error %v", err)
		}
	})
	if _, err := client.New(hub.Provider).Status(t.Context(), id); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("the test did not delete the instance of the transaction: got error %v", err)
	}
}

// before wraps another hub.
type before struct{ client.Backend }

func (b before) Unwrap() client.Backend { return b.Backend }

func TestNewDeployed_wrappedHub_preparesStarts(t *testing.T) {
	t.Parallel()
	hub := served(t, approved("v1"))
	env := perduretest.NewDeployed(t, before{before{hub.Provider}})
	prepared, err := env.Client().PrepareStart(t.Context(), "approve", nil)
	if err != nil {
		t.Fatal(err)
	}
	if writes := dynamo.TransactItems(prepared); len(writes) != 2 {
		t.Errorf("got %d writes, want 2", len(writes))
	}
}

func TestNewDeployed_methodRequiresVirtualTime_failsTheTest(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(env *perduretest.Env){
		"Stub":         func(env *perduretest.Env) { env.Stub("v1") },
		"Calls":        func(env *perduretest.Env) { env.Calls() },
		"RunUntilIdle": (*perduretest.Env).RunUntilIdle,
		"Deploy":       func(env *perduretest.Env) { env.Deploy(approved("v2")) },
		"CrashAt":      func(env *perduretest.Env) { env.CrashAt(1) },
		"Outage":       func(env *perduretest.Env) { env.Outage(perduretest.SQS, time.Hour) },
		"TableClient":  func(env *perduretest.Env) { perduretest.TableClient(env) },
		"RunSweeper":   perduretest.RunSweeper,
		"Expect":       func(env *perduretest.Env) { env.Expect(perduretest.Hang) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantFailure(t, func(t *testing.T) {
				t.Helper()
				do(perduretest.NewDeployed(t, served(t, approved("v1")).Provider))
			}, name+" is not supported in a deployed hub")
		})
	}
}
