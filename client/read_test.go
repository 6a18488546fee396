package client_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

func TestStatus_missingInstance_returnsErrNotFound(t *testing.T) {
	t.Parallel()
	c, _ := setup(t)
	if _, err := c.Status(t.Context(), "missing"); !errors.Is(err, client.ErrNotFound) ||
		!errors.Is(err, provider.ErrNotFound) {
		t.Errorf("Status: got error %v", err)
	}
	var field *provider.FieldError
	if _, err := c.Status(t.Context(), "a\x00"); !errors.As(err, &field) || field.Field != "instanceId" {
		t.Errorf("Status of an invalid ID: got error %v", err)
	}
}

func TestStatus_child_hasItsParent(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	mustStart(t, c, "one")
	parent := history.Parent{InstanceID: "parent", ExecutionID: "x9", EventID: 4}
	p.SetParent("one", parent)
	s, err := c.Status(t.Context(), "one")
	if err != nil || s.Parent == nil || *s.Parent != parent {
		t.Errorf("Status: got %+v, error %v", s, err)
	}
	b, err := json.Marshal(s)
	if want := `"parent":{"instanceId":"parent","executionId":"x9","eventId":4}`; err != nil ||
		!strings.Contains(string(b), want) {
		t.Errorf("got %s, error %v", b, err)
	}
}

func TestResult_completedInstance_returnsOutput(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	mustStart(t, c, "one")
	status := func() client.Status {
		t.Helper()
		s, err := c.Status(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if _, err := client.Result[int](status()); err == nil {
		t.Error("Result of a running instance: got no error")
	}
	if _, err := client.Result[int](client.Status{}); err == nil ||
		!strings.Contains(err.Error(), "check the error that was returned with it") {
		t.Errorf("Result of an empty status: got error %v", err)
	}
	p.Append("one", completed("7"))
	if n, err := client.Result[int](status()); n != 7 || err != nil {
		t.Errorf("Result: got %d, error %v, want 7", n, err)
	}
	if _, err := client.Result[[]string](status()); err == nil {
		t.Error("Result[[]string] of 7: got no error")
	}
	for s, err := range c.List(t.Context(), client.ListQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Result[int](s); err == nil {
			t.Error("Result of a list entry: got no error")
		}
	}
}

func TestResult_failedInstance_returnsOrchestrationError(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	mustStart(t, c, "one")
	p.Append("one", history.Event{Kind: history.OrchestrationFailed, Error: &history.Failure{
		Type: "OrderError", Message: "no stock", Cause: &history.Failure{
			Type: history.TypeTimeout, Message: "warehouse",
		},
	}})
	s, err := c.Wait(t.Context(), "one")
	if err != nil || s.Status != client.StatusFailed {
		t.Fatalf("Wait: got %+v, error %v", s, err)
	}
	_, err = client.Result[string](s)
	var failed *client.OrchestrationError
	if !errors.As(err, &failed) || failed.InstanceID != "one" || failed.Failure.Type != "OrderError" {
		t.Errorf("Result: got error %v", err)
	}
	var timeout *perdure.TimeoutError
	if !errors.As(err, &timeout) || timeout.Message != "warehouse" || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Result: got %v, want a timeout error", err)
	}
	if want := `orchestration "hello" (instance "one"): OrderError: no stock`; err.Error() != want {
		t.Errorf("got %s\nwant %s", err, want)
	}
}

func ids[T any](t *testing.T, seq iter.Seq2[T, error], id func(T) string) string {
	t.Helper()
	var all strings.Builder
	for v, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(id(v) + " ")
	}
	return all.String()
}

func TestHistory_afterEvent_returnsLaterEvents(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	mustStart(t, c, "one")
	p.Append("one", history.Event{Kind: history.TurnStarted}, completed("1"))
	event := func(e history.Event) string { return strconv.FormatInt(e.ID, 10) }
	if got := ids(t, c.History(t.Context(), "one"), event); got != "1 2 3 " {
		t.Errorf("all: got %s", got)
	}
	if got := ids(t, c.History(t.Context(), "one", client.WithExecutionID("x1"), client.AfterEvent(2)),
		event); got != "3 " {
		t.Errorf("after 2: got %s", got)
	}
}

// continued returns a hub with an instance "one" in its third execution, and a later instance "two" with one execution.
func continued(t *testing.T) (*client.Client, *fakeprovider.Provider) {
	t.Helper()
	c, p := setup(t)
	mustStart(t, c, "one")
	for n := range 2 {
		p.Append("one", history.Event{Kind: history.TurnStarted},
			history.Event{
				Kind: history.OrchestrationContinuedAsNew, Time: began.Add(time.Duration(n+1) * time.Hour),
				Input: history.Payload("7"),
			})
	}
	mustStart(t, c, "two")
	return c, p
}

func TestExecutions_continuedInstance_areListedNewestFirst(t *testing.T) {
	t.Parallel()
	c, _ := continued(t)
	execution := func(x client.Execution) string {
		return fmt.Sprintf("%s:%d@%s", x.ExecutionID, x.Number, x.StartedAt.Sub(began))
	}
	if got := ids(t, c.Executions(t.Context(), "one"), execution); got != "x3:3@2h0m0s x2:2@1h0m0s x1:1@0s " {
		t.Errorf("got executions %s", got)
	}
	for x := range c.Executions(t.Context(), "one") {
		if x.Number != 3 {
			t.Errorf("got execution %d, want 3", x.Number)
		}
		break
	}
	s, err := c.Status(t.Context(), "one")
	if err != nil || s.ExecutionID != "x3" || s.ExecutionNumber != 3 {
		t.Errorf("got status %+v, error %v", s, err)
	}
}

func TestExecutionsPage_limitAndCursor_returnPages(t *testing.T) {
	t.Parallel()
	c, p := continued(t)
	page := func(limit int, cursor string) string {
		t.Helper()
		found, err := c.ExecutionsPage(t.Context(), "one", client.Paging{Limit: limit, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, x := range found.Items {
			all.WriteString(x.ExecutionID + " ")
		}
		return all.String() + "then " + found.NextCursor
	}
	for want, got := range map[string]string{
		"x3 x2 x1 then ": page(0, ""),
		"x3 x2 then x2":  page(2, ""),
		"x1 then ":       page(2, "x2"),
		"then ":          page(2, "x1"),
	} {
		if got != want {
			t.Errorf("got page %q, want %q", got, want)
		}
	}
	p.Append("one", history.Event{Kind: history.OrchestrationContinuedAsNew})
	if got := page(1, "x3"); got != "x2 then x2" {
		t.Errorf("page after x3 with a new execution: got %q", got)
	}
}

func TestExecutionsPage_invalidArgument_isRejected(t *testing.T) {
	t.Parallel()
	c, _ := continued(t)
	field := func(name string) func(error) bool {
		return func(err error) bool {
			f, ok := errors.AsType[*provider.FieldError](err)
			return ok && f.Field == name
		}
	}
	for name, tt := range map[string]struct {
		id     string
		limit  int
		cursor string
		is     func(error) bool
	}{
		"unknown instance": {"missing", 0, "", func(err error) bool {
			return errors.Is(err, client.ErrNotFound)
		}},
		"bad id":                 {"", 0, "", field("instanceId")},
		"negative limit":         {"one", -1, "", field("limit")},
		"huge limit":             {"one", 1001, "", field("limit")},
		"invalid cursor":         {"one", 0, "nowhere", field("cursor")},
		"cursor of another list": {"one", 0, "x4", field("cursor")},
	} {
		if page, err := c.ExecutionsPage(t.Context(), tt.id,
			client.Paging{Limit: tt.limit, Cursor: tt.cursor}); !tt.is(err) {
			t.Errorf("%s: got %+v, error %v", name, page, err)
		}
	}
}

func TestHistory_pastExecution_returnsItsEvents(t *testing.T) {
	t.Parallel()
	c, _ := continued(t)
	event := func(e history.Event) string { return string(e.Kind) + e.ExecutionID }
	for execution, want := range map[string]string{
		"x1": "OrchestrationStarted TurnStarted OrchestrationContinuedAsNewx2 ",
		"x2": "OrchestrationStarted TurnStarted OrchestrationContinuedAsNewx3 ",
		"":   "OrchestrationStarted ",
	} {
		if got := ids(t, c.History(t.Context(), "one", client.WithExecutionID(execution)), event); got != want {
			t.Errorf("%q: got %s", execution, got)
		}
	}
}

func TestHistory_invalidArgument_isRejected(t *testing.T) {
	t.Parallel()
	c, _ := setup(t)
	mustStart(t, c, "one")
	mustStart(t, c, "two")
	var field *provider.FieldError
	for name, tt := range map[string]struct {
		id  string
		opt client.HistoryOption
		is  func(error) bool
	}{
		"unknown instance": {"missing", client.AfterEvent(0), func(err error) bool {
			return errors.Is(err, client.ErrNotFound)
		}},
		"execution of another instance": {"one", client.WithExecutionID("x2"), func(err error) bool {
			return errors.Is(err, client.ErrNotFound)
		}},
		"too long execution ID": {"one", client.WithExecutionID(strings.Repeat("x", 65)), func(err error) bool {
			return errors.As(err, &field) && field.Field == "execution"
		}},
		"negative event number": {"one", client.AfterEvent(-1), func(err error) bool {
			return errors.As(err, &field) && field.Field == "after"
		}},
	} {
		seen := 0
		for e, err := range c.History(t.Context(), tt.id, tt.opt) {
			if seen++; !tt.is(err) {
				t.Errorf("%s: got %v, error %v", name, e, err)
			}
		}
		if seen != 1 {
			t.Errorf("%s: got %d events and errors, want 1", name, seen)
		}
	}
}

// pagesOfTen is a hub with a default page size of ten.
type pagesOfTen struct{ *fakeprovider.Provider }

func (p pagesOfTen) ListInstances(ctx context.Context, q provider.ListQuery) (provider.Page, error) {
	q.Limit = cmp.Or(q.Limit, 10)
	return p.Provider.ListInstances(ctx, q)
}

func TestList_severalPages_returnsAllInstances(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	for i := range 25 {
		mustStart(t, c, fmt.Sprintf("i%02d", i))
	}
	p.Append("i07", completed("1"))
	id := func(s client.Status) string { return s.InstanceID }
	seen := map[string]bool{}
	for s, err := range connect(pagesOfTen{p}).List(t.Context(), client.ListQuery{}) {
		if err != nil || seen[s.InstanceID] {
			t.Fatalf("instance %s: listed twice or error %v", s.InstanceID, err)
		}
		seen[s.InstanceID] = true
	}
	if len(seen) != 25 {
		t.Errorf("got %d instances, want 25", len(seen))
	}
	if got := ids(t, c.List(t.Context(), client.ListQuery{Status: client.StatusCompleted}), id); got != "i07 " {
		t.Errorf("completed: got %s", got)
	}
}

func TestListPage_invalidArgument_isRejected(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	for i := range 3 {
		mustStart(t, c, strconv.Itoa(i))
	}
	page, err := c.ListPage(t.Context(), client.ListQuery{}, client.Paging{Limit: 1})
	if err != nil || page.NextCursor == "" {
		t.Fatalf("first page: got %+v, error %v", page, err)
	}
	for want, tt := range map[string]struct {
		q client.ListQuery
		p client.Paging
	}{
		"status": {q: client.ListQuery{Status: "running"}},
		"limit":  {p: client.Paging{Limit: 1001}},
		"cursor": {client.ListQuery{Orchestration: "hello"}, client.Paging{Cursor: page.NextCursor}},
	} {
		var field *provider.FieldError
		if _, err := c.ListPage(t.Context(), tt.q, tt.p); !errors.As(err, &field) || field.Field != want {
			t.Errorf("%+v: got error %v", tt, err)
		}
	}
	down := errors.New("down")
	p.FailWith(down)
	for _, err := range c.List(t.Context(), client.ListQuery{}) {
		if !hasCause(err, down) {
			t.Errorf("List: got error %v", err)
		}
	}
}
