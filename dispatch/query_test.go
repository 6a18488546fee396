package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// errNegative is the error of the query handler "received" for a negative input.
var errNegative = errors.New("no negative numbers")

// counting counts events up to n. Its query handlers return the count, or break the rules of query handlers.
func counting(ctx *perdure.OrchestrationContext, n int) (int, error) {
	receivedCount := 0
	set := func(name string, handler func(int) (int, error)) {
		if err := perdure.SetQueryHandler(ctx, name, handler); err != nil {
			panic(err)
		}
	}
	set("received", func(more int) (int, error) {
		if more < 0 {
			return 0, errNegative
		}
		return receivedCount + more, nil
	})
	set("changes", func(int) (int, error) { receivedCount += 100; return receivedCount, nil })
	setInvalidHandlers(ctx, set)

	for receivedCount < n {
		if _, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx); err != nil {
			return 0, err
		}
		receivedCount++
		set("late", func(int) (int, error) { return receivedCount, nil })
	}
	return receivedCount, nil
}

// setInvalidHandlers sets query handlers, each of which breaks a rule.
func setInvalidHandlers(ctx *perdure.OrchestrationContext, set func(string, func(int) (int, error))) {
	open := perdure.WaitForExternalEvent[int](ctx, "never")
	set("waits", func(int) (int, error) { return open.Await(ctx) })
	set("schedules", func(int) (int, error) { perdure.CallActivity(ctx, inc, 1); return 1, nil })
	set("sets a status", func(int) (int, error) { ctx.SetCustomStatus("queried"); return 1, nil })
	set("sets a handler", func(int) (int, error) {
		return 1, perdure.SetQueryHandler(ctx, "more", func(int) (int, error) { return 1, nil })
	})
	set("takes a side effect", func(int) (int, error) { return perdure.SideEffect(ctx, func() int { return 1 }), nil })
	set("cancels", func(int) (int, error) { open.Cancel("queried"); return 1, nil })
	set("starts a coroutine", func(int) (int, error) {
		perdure.Go(ctx, func(*perdure.OrchestrationContext) {})
		return 1, nil
	})
	set("schedules elsewhere", func(int) (int, error) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			perdure.CallActivity(ctx, inc, 1)
		}()
		<-done
		return 1, nil
	})
	set("schedules elsewhere and waits", func(int) (int, error) {
		go func() { perdure.CallActivity(ctx, inc, 1) }()
		time.Sleep(time.Hour) // waits for a result that never arrives
		return 1, nil
	})
	set("schedules and recovers", func(int) (n int, _ error) {
		defer func() { _ = recover(); n = 1 }()
		perdure.CallActivity(ctx, inc, 1)
		return 1, nil
	})
	set("panics", func(int) (int, error) { panic("no such shelf") })
	set("exits", func(int) (int, error) { runtime.Goexit(); return 1, nil })
	set("blocks", func(int) (int, error) { time.Sleep(time.Hour); return 1, nil }) // blocks outside perdure
	_ = perdure.SetQueryHandler(ctx, "large", func(struct{}) (string, error) {
		return strings.Repeat("x", perdure.MaxQueryResultBytes), nil
	})
	_ = perdure.SetQueryHandler(ctx, "nothing", func(struct{}) ([]int, error) { return nil, nil })
}

// counts returns the registry of most tests with the orchestration "counting".
func counts() *perdure.Registry {
	r := registry()
	perdure.AddOrchestration(r, "counting", counting)
	return r
}

// queryInstance queries instance i-1. It fails the test if the query makes calls other than strongly consistent reads.
func (h *hub) queryInstance(query, input string) (string, error) {
	h.t.Helper()
	return h.queryOn(h.Orchestrators[0], query, input)
}

// queryOn queries instance i-1 like ask, with another querier.
func (h *hub) queryOn(o provider.Querier, query, input string) (string, error) {
	h.t.Helper()
	before := len(h.made())
	response, err := o.QueryInstance(h.t.Context(), provider.QueryRequest{
		InstanceID: "i-1", Name: query, Input: json.RawMessage(input),
	})
	for _, c := range h.made()[before:] {
		if !readsStrongly(c) {
			h.t.Errorf("query %q called %s: %+v", query, c.Operation, c.Input)
		}
	}
	return string(response), err
}

// readsStrongly reports whether a call is a strongly consistent read.
func readsStrongly(c simaws.Call) bool {
	switch in := c.Input.(type) {
	case *dynamodb.GetItemInput:
		return aws.ToBool(in.ConsistentRead)
	case *dynamodb.QueryInput:
		return aws.ToBool(in.ConsistentRead)
	default:
		return false
	}
}

// wantQueryResult fails the test unless a query returns the result want.
func (h *hub) wantQueryResult(query, input, want string) {
	h.t.Helper()
	if got, err := h.queryInstance(query, input); got != want || err != nil {
		h.t.Errorf("query %q returned %s, %v, want %s", query, got, err, want)
	}
}

// wantQueryError fails the test unless a query returns a QueryError with the code want. The error text must contain the
// strings in mentions, the instance ID and the name of the query.
func (h *hub) wantQueryError(query, input string, want provider.QueryCode, mentions ...string) *provider.QueryError {
	h.t.Helper()
	got, err := h.queryInstance(query, input)
	e, ok := errors.AsType[*provider.QueryError](err)
	if !ok || e.Code != want {
		h.t.Fatalf("query %q returned %s, %v, want error %s", query, got, err, want)
	}
	for _, part := range append(mentions, "i-1", query) {
		if !strings.Contains(e.Error(), part) {
			h.t.Errorf("query %q: error %v lacks %q", query, e, part)
		}
	}
	return e
}

// sendEvent sends an event to the instance and runs its turn.
func (h *hub) sendEvent(in provider.Instance, id string) {
	h.t.Helper()
	h.send(provider.Message{
		Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, StartID: in.StartID, Name: "add", EventID: id,
		Data: history.Payload("1"),
	})
	h.turn(0)
}

// A query returns the state after the last committed turn of a running, paused or ended instance. It fails before the
// first turn.
func TestQuery_returnsTheStateOfTheLastCommittedTurn(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: counts()}, func(_ context.Context, h *hub) {
		if _, err := h.queryInstance("received", "0"); !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("unknown instance: got error %v, want ErrNotFound", err)
		}
		in := h.start("counting", 3)
		h.wantQueryError("received", "0", provider.QueryNotStarted, "has not run its first turn")

		h.turn(0)
		h.wantQueryResult("received", "0", "0")
		h.wantQueryResult("received", "", "0") // without an input
		h.sendEvent(in, "1")
		h.wantQueryResult("received", "5", "6")

		h.pause(in, "p")
		h.turn(0)
		h.sendEvent(in, "2") // the session parks the event, so the code has not received it
		h.wantQueryResult("received", "0", "1")
		h.resume(in, "r")
		h.turn(0)
		h.wantQueryResult("received", "0", "2")

		h.sendEvent(in, "3")
		h.wantQueryResult("received", "0", "3")
		if now := h.read(in); now.Status != provider.StatusCompleted {
			t.Errorf("the instance is %s, want completed", now.Status)
		}
		if err := h.Provider.DeleteInstance(t.Context(), in.InstanceID, false); err != nil {
			t.Fatal(err)
		}
		if _, err := h.queryInstance("received", "0"); !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("purged instance: got error %v, want ErrNotFound", err)
		}
	})
}

// A query of a terminated instance returns the state of the last turn of its code. It fails if the code never ran.
func TestQuery_instanceIsTerminated_returnsItsLastState(t *testing.T) {
	t.Parallel()
	for _, turns := range []int{0, 1} {
		inBubble(t, simhub.Options{Registry: counts()}, func(_ context.Context, h *hub) {
			in := h.start("counting", 3)
			for range turns {
				h.turn(0)
			}
			h.send(provider.Message{
				Kind: provider.MessageTerminate, InstanceID: in.InstanceID, StartID: in.StartID, Text: "enough",
			})
			h.turn(0)
			if now := h.read(in); now.Status != provider.StatusTerminated {
				t.Fatalf("the instance is %s, want terminated", now.Status)
			}
			if turns == 0 {
				h.wantQueryError("received", "0", provider.QueryNotStarted)
			} else {
				h.wantQueryResult("received", "0", "0")
			}
		})
	}
}

// Changes that a query handler makes are dropped. The next turn in the process uses its warm instance and reads
// nothing.
func TestQuery_handlerChangesState_warmInstanceIsUnchanged(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: counts()}, func(_ context.Context, h *hub) {
		in := h.start("counting", 2)
		h.turn(0)
		h.sendEvent(in, "1")
		for range 2 {
			h.wantQueryResult("changes", "0", "101")
		}
		before := len(h.made())
		h.sendEvent(in, "2")
		if ops := h.operations(before); slices.Contains(ops, "Query") {
			t.Errorf("the turn read the history: %v", ops)
		}
		if end := h.finish(in); string(end.Output) != "2" {
			t.Errorf("the instance ended with %s %s, want the result 2", end.Kind, end.Output)
		}
		h.checkIdle()
	})
}

// A query observes every turn that was committed before it, even if another process has a stale warm instance.
func TestQuery_otherProcessIsStale_observesCommittedTurns(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: counts(), Environments: 2}, func(_ context.Context, h *hub) {
		in := h.start("counting", 2)
		h.turn(0)
		h.send(provider.Message{
			Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, StartID: in.StartID, Name: "add",
			EventID: "1",
			Data:    history.Payload("1"),
		})
		h.turn(1)
		h.wantQueryResult("received", "0", "1")
	})
}

// The error for an unknown query lists the handlers that the code has set so far. The last handler of a name counts.
func TestQuery_unknownName_errorListsTheHandlers(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: counts()}, func(_ context.Context, h *hub) {
		in := h.start("counting", 3)
		h.turn(0)
		e := h.wantQueryError("late", "0", provider.QueryHandlerNotFound, `"received"`)
		if !slices.IsSorted(e.Known) || !slices.Contains(e.Known, "received") || slices.Contains(e.Known, "late") {
			t.Errorf("got known queries %q", e.Known)
		}
		h.sendEvent(in, "1")
		h.wantQueryResult("late", "0", "1")
	})
}

// A query handler that does more than read fails its query. The error names the line, and the instance is unchanged.
func TestQuery_handlerDoesMoreThanRead_fails(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: counts(), TurnTimeout: time.Second}, func(_ context.Context, h *hub) {
		in := h.start("counting", 1)
		h.turn(0)
		before := len(h.events(in))
		for _, query := range []string{
			"waits", "schedules", "sets a status", "sets a handler", "takes a side effect", "cancels",
			"starts a coroutine", "schedules elsewhere", "schedules elsewhere and waits", "schedules and recovers",
		} {
			h.wantQueryError(query, "0", provider.QueryNotReadOnly, "must only read", "dispatch/query_test.go:")
		}
		h.wantQueryError("blocks", "0", provider.QueryHandlerTimedOut, "within 1s", "dispatch/query_test.go:")
		time.Sleep(time.Hour) // the handler returns

		if f := h.wantQueryError("panics", "0", provider.QueryFailed, "no such shelf",
			"dispatch/query_test.go:").Failure; f == nil || f.Type != history.TypePanic {
			t.Errorf("got failure %+v, want a panic", f)
		}
		if f := h.wantQueryError("exits", "0", provider.QueryFailed, "Goexit").Failure; f == nil ||
			f.Type != history.TypeGoexit {
			t.Errorf("got failure %+v, want Goexit", f)
		}
		if f := h.wantQueryError("received", "-1", provider.QueryFailed, errNegative.Error()).Failure; f == nil ||
			f.Type != history.TypeError {
			t.Errorf("got failure %+v, want the error of the handler", f)
		}
		if f := h.wantQueryError("received", `"x"`, provider.QueryBadInput,
			`decode input of query "received"`).Failure; f == nil || f.Type != history.TypeDecode {
			t.Errorf("got failure %+v, want a decode error", f)
		}
		if f := h.wantQueryError("large", "{}", provider.QueryResultTooLarge, "1048578", "1048576").Failure; f == nil ||
			f.Type != history.TypePayloadTooLarge {
			t.Errorf("got failure %+v, want payload too large", f)
		}
		h.wantQueryResult("nothing", "{}", "null")

		if after := len(h.events(in)); after != before {
			t.Errorf("got %d events, want %d as before the queries", after, before)
		}
		h.sendEvent(in, "1")
		if now := h.read(in); now.Status != provider.StatusCompleted || now.CustomStatus != nil {
			t.Errorf("the instance is %s with custom status %s, want completed without", now.Status, now.CustomStatus)
		}
	})
}

// A query fails if the build lacks the orchestration, or if its code differs from history. The failure does not block
// the instance. A blocked instance responds to a query in a build that can replay it.
func TestQuery_buildCannotReplay_fails(t *testing.T) {
	t.Parallel()
	queried := func(name string) *perdure.Registry {
		r := perdure.NewRegistry()
		perdure.AddOrchestration(r, "waits", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			if err := perdure.SetQueryHandler(ctx, "name", func(struct{}) (string, error) {
				return name, nil
			}); err != nil {
				return 0, err
			}
			return perdure.WaitForExternalEvent[int](ctx, name).Await(ctx)
		})
		return r
	}
	inBubble(t, simhub.Options{Registry: queried("add")}, func(_ context.Context, h *hub) {
		in := h.start("waits", 1)
		h.turn(0)
		other := h.orchestrator(queried("other"), "other")
		for querier, want := range map[provider.Querier]provider.QueryCode{
			h.orchestrator(registry(), "without"): provider.QueryUnregistered, other: provider.QueryBlocked,
		} {
			_, err := h.queryOn(querier, "name", "")
			e, ok := errors.AsType[*provider.QueryError](err)
			if !ok || e.Code != want {
				t.Fatalf("got error %v, want %s", err, want)
			}
			if want == provider.QueryBlocked &&
				(e.Failure == nil || e.Failure.Type != history.TypeNondeterminism ||
					!strings.Contains(e.Failure.Got, "other")) {
				t.Errorf("got diagnosis %+v, want the event that differs", e.Failure)
			}
		}
		if now := h.read(in); now.Status != provider.StatusRunning {
			t.Errorf("the instance is %s, want running", now.Status)
		}

		h.send(provider.Message{
			Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, StartID: in.StartID, Name: "unobserved",
			EventID: "1",
			Data:    history.Payload("1"),
		})
		for range 4 {
			h.passRecords(other)
			time.Sleep(10 * time.Minute)
		}
		if now := h.read(in); now.Status != provider.StatusBlocked {
			t.Fatalf("the instance is %s, want blocked", now.Status)
		}
		h.wantQueryResult("name", "", `"add"`)
	})
}

// Each execution has its own query handlers and its own state.
func TestQuery_instanceContinuesAsNew_hasHandlersOfItsExecution(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "continue", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		if err := perdure.SetQueryHandler(ctx, fmt.Sprint("generation ", n), func(struct{}) (int, error) {
			return n, nil
		}); err != nil {
			return 0, err
		}
		if _, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx); err != nil {
			return 0, err
		}
		return perdure.ContinueAsNew[int](ctx, n+1)
	})
	inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
		in := h.start("continue", 1)
		h.turn(0)
		h.wantQueryResult("generation 1", "", "1")
		h.sendEvent(in, "1")
		h.wantQueryResult("generation 2", "", "2")
		h.wantQueryError("generation 1", "", provider.QueryHandlerNotFound, "generation 2")
	})
}

// A client queries the orchestrator that it is configured with. Without one, it returns ErrQueriesUnsupported.
func TestQuery_clientHasAQuerier_usesIt(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: counts()}, func(ctx context.Context, h *hub) {
		in := h.start("counting", 1)
		h.turn(0)
		if _, err := client.New(h.Provider).Query(ctx, in.InstanceID, "received", 1); !errors.Is(err,
			client.ErrQueriesUnsupported) {
			t.Errorf("without a querier: got error %v, want ErrQueriesUnsupported", err)
		}
		c := client.New(h.Provider, client.WithQuerier(h.Orchestrators[0]))
		if response, err := c.Query(ctx, in.InstanceID, "received", 1); err != nil || string(response) != "1" {
			t.Errorf("got %s, %v, want 1", response, err)
		}
		short, stop := context.WithTimeout(ctx, 100*time.Millisecond)
		defer stop()
		_, err := c.Query(short, in.InstanceID, "blocks", 1)
		if e, ok := errors.AsType[*client.QueryError](err); !ok || e.Code != client.QueryHandlerTimedOut {
			t.Errorf("handler that exceeds the client's deadline: got error %v, want a timeout", err)
		}
		time.Sleep(time.Hour) // the handler returns
	})
}

// A query does not run the code of an instance that is blocked as poison, because that code could crash its process.
func TestQuery_instanceIsPoison_doesNotRunItsCode(t *testing.T) {
	t.Parallel()
	f := &fatal{}
	inBubble(t, simhub.Options{Registry: f.registry(), Intercept: f.crash()}, func(_ context.Context, h *hub) {
		in := h.start("fatal", 1)
		h.serveFor(time.Minute)
		h.raise(in, "e", 1)
		h.serveFor(2 * time.Hour)
		if now := h.read(in); now.Status != provider.StatusBlocked || now.Diagnosis.Type != history.TypePoison {
			t.Fatalf("the instance is %s with diagnosis %+v, want blocked as poison", now.Status, now.Diagnosis)
		}
		if e := h.wantQueryError("state", "", provider.QueryBlocked, "crashed its process"); e.Failure == nil ||
			e.Failure.Type != history.TypePoison {
			t.Errorf("got diagnosis %+v, want poison", e.Failure)
		}
	})
}

// A slow replay and a handler that hangs end before the deadline of the invocation. Otherwise the invocation would
// fail, and the build would be counted as faulty.
func TestQuery_handlerHangs_endsBeforeTheInvocation(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "slow", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		time.Sleep(300 * time.Millisecond) // simulates a computation
		blocks := func(struct{}) (int, error) { time.Sleep(time.Hour); return 1, nil }
		if err := perdure.SetQueryHandler(ctx, "blocks", blocks); err != nil {
			return 0, err
		}
		return perdure.WaitForExternalEvent[int](ctx, "never").Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		h.start("slow", 1)
		h.turn(0)
		invocation, end := context.WithTimeout(ctx, time.Second)
		defer end()
		_, err := h.Orchestrators[0].QueryInstance(invocation, provider.QueryRequest{InstanceID: "i-1", Name: "blocks"})
		if e, ok := errors.AsType[*provider.QueryError](err); !ok || e.Code != provider.QueryHandlerTimedOut ||
			invocation.Err() != nil {
			t.Errorf("got error %v, invocation context %v; want a handler timeout before the deadline",
				err, invocation.Err())
		}
		time.Sleep(time.Hour) // the handler returns
	})
}
