package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// scenarioQueries has a client that queries its instance continuously.
const scenarioQueries = "queries"

// tallyActivities is the number of activities that tally calls one after the other.
const tallyActivities = 6

// hangTime is far longer than the limit of a query handler.
const hangTime = time.Hour

// tally calls activities in sequence, and its query handler returns the number of outcomes. Its other handlers must not
// affect a turn.
func tally(ctx *perdure.OrchestrationContext, n int) (int, error) {
	seen := 0
	err := errors.Join(
		perdure.SetQueryHandler(ctx, "seen", func(struct{}) (int, error) { return seen, nil }),
		perdure.SetQueryHandler(ctx, "spoils", func(struct{}) (int, error) { seen += 100; return seen - 100, nil }),
		perdure.SetQueryHandler(ctx, "schedules", func(struct{}) (int, error) {
			perdure.CallActivity(ctx, inc, 1)
			return 1, nil
		}),
		perdure.SetQueryHandler(ctx, "hangs", func(struct{}) (int, error) { time.Sleep(hangTime); return 1, nil }),
	)
	for err == nil && seen < n {
		if _, err = perdure.CallActivity(ctx, inc, seen).Await(ctx); err == nil {
			seen++
		}
	}
	return seen, err
}

// isQueryCall reports whether a call is made by a query.
func isQueryCall(ctx context.Context) bool {
	name, _ := simhub.Process(ctx)
	return strings.HasPrefix(name, queryName)
}

const queryName = "query "

// isRollupCall reports whether a call reads or writes rolled-up segments, which any reader of a long history may write.
func isRollupCall(c simaws.Call) bool {
	const rollups = "g#"
	if in, ok := c.Input.(*dynamodb.QueryInput); ok {
		return strings.HasPrefix(text(in.ExpressionAttributeValues, ":sk"), rollups)
	}
	in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
	return ok && !slices.ContainsFunc(in.TransactItems, func(w ddbtypes.TransactWriteItem) bool {
		return w.ConditionCheck == nil && (w.Put == nil || !strings.HasPrefix(text(w.Put.Item, "sk"), rollups))
	})
}

// maxQueries limits the queries of an instance that may never end because it is blocked.
const maxQueries = 150

// queryInstances queries the instance in all three environments, concurrently with its turns, until it has ended, and
// once afterwards.
func (m *simClient) queryInstances(ctx context.Context) {
	defer time.Sleep(hangTime) // hanging handlers return
	for n := 0; n < maxQueries && m.isActive(ctx); n++ {
		over := m.over(ctx)
		simhub.Idle(ctx, m.rng.IntN(8))
		m.wrong("query", m.queryOnce(ctx, n))
		if over {
			return
		}
		if m.rng.IntN(4) == 0 {
			time.Sleep(time.Second)
		}
	}
}

// queryOnce makes one query in a process that may fail, and checks that the response reflects a state that was
// committed before or during the query.
func (m *simClient) queryOnce(ctx context.Context, n int) error {
	q := []string{"seen", "seen", "spoils", "schedules", "hangs", "unknown"}[m.rng.IntN(6)]
	o := m.h.Environment(m.rng.IntN(len(m.h.Orchestrators)))
	least, begun := m.committed()
	doc, err := o.QueryInstance(m.h.Scheduler.Exposed(ctx, fmt.Sprint(queryName, n)), provider.QueryRequest{
		InstanceID: m.first.InstanceID, Name: q,
	})
	most, _ := m.committed()
	if isInjectedFault(err) {
		return nil
	}
	if e, ok := errors.AsType[*provider.QueryError](err); ok {
		return m.checkQueryError(e, begun)
	}
	if err != nil {
		return err
	}
	seen := -1
	if err := json.Unmarshal(doc, &seen); err != nil || seen < least || seen > most || q != "seen" && q != "spoils" {
		return errors.Join(err, fmt.Errorf("query %s returned %s, want %d to %d committed outcomes",
			q, doc, least, most))
	}
	return nil
}

// checkQueryError returns an error if a query failed with an unexpected code.
func (m *simClient) checkQueryError(e *provider.QueryError, begun bool) error {
	verdicts, _ := m.w.found()
	switch want := map[string]provider.QueryCode{
		"schedules": provider.QueryNotReadOnly,
		"hangs":     provider.QueryHandlerTimedOut, "unknown": provider.QueryHandlerNotFound,
	}[e.Query]; {
	case e.Code == want, e.Code == provider.QueryNotStarted && !begun, e.Code == provider.QueryBlocked && verdicts > 0:
		return nil
	default:
		return e
	}
}

// committed returns the number of outcomes in history, and whether the code has started. Its reads are not part of the
// simulation.
func (m *simClient) committed() (outcomes int, begun bool) {
	for e, err := range m.h.Provider.ReadHistory(context.Background(), m.first.InstanceID, m.first.ExecutionID, 0) {
		m.wrong("history", err)
		begun = begun || e.Kind == history.ActivityScheduled
		if e.Kind == history.ActivityCompleted {
			outcomes++
		}
	}
	return outcomes, begun
}

// timeWithoutWaits is the maximum duration of an instance that does not wait. Simulated time passes only when no
// goroutine runs.
const timeWithoutWaits = time.Second

// checkQueries checks that queries have not changed the end and the duration of the instance, although a handler hung
// for ten seconds.
func (m *simClient) checkQueries(ctx context.Context) error {
	in, err := m.h.Provider.ReadInstance(ctx, m.first.InstanceID)
	if err != nil {
		return err
	}
	end, err := m.h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)
	switch took := end.Time.Sub(m.first.CreatedAt); {
	case err != nil:
		return err
	case end.Kind != history.OrchestrationCompleted || string(end.Output) != fmt.Sprint(tallyActivities):
		return fmt.Errorf("ended with %s, output %s", end.String(), end.Output)
	case m.faultless && took > timeWithoutWaits:
		return fmt.Errorf("took %v without waiting", took)
	}
	return nil
}
