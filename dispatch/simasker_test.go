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

// scenarioAsked has a client that asks its instance all the while.
const scenarioAsked = "queries"

// tallied is how many activities tally has in a row.
const tallied = 6

// hangsFor is far longer than a handler may take.
const hangsFor = time.Hour

// tally calls activities in a row, and answers how many outcomes it has seen. What its other handlers do, no turn may notice.
func tally(ctx *perdure.OrchestrationContext, n int) (int, error) {
	seen := 0
	err := errors.Join(
		perdure.SetQueryHandler(ctx, "seen", func(struct{}) (int, error) { return seen, nil }),
		perdure.SetQueryHandler(ctx, "spoils", func(struct{}) (int, error) { seen += 100; return seen - 100, nil }),
		perdure.SetQueryHandler(ctx, "schedules", func(struct{}) (int, error) { perdure.CallActivity(ctx, inc, 1); return 1, nil }),
		perdure.SetQueryHandler(ctx, "hangs", func(struct{}) (int, error) { time.Sleep(hangsFor); return 1, nil }),
	)
	for err == nil && seen < n {
		if _, err = perdure.CallActivity(ctx, inc, seen).Await(ctx); err == nil {
			seen++
		}
	}
	return seen, err
}

// asksIn reports whether a call is of a query.
func asksIn(ctx context.Context) bool {
	name, _ := simhub.Process(ctx)
	return strings.HasPrefix(name, queryName)
}

const queryName = "query "

// isOfRollups reports whether a call is of the copies of segments that who reads a long history leaves to the next: any reader may.
func isOfRollups(c simaws.Call) bool {
	const rollups = "g#"
	if in, ok := c.Input.(*dynamodb.QueryInput); ok {
		return strings.HasPrefix(text(in.ExpressionAttributeValues, ":sk"), rollups)
	}
	in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
	return ok && !slices.ContainsFunc(in.TransactItems, func(w ddbtypes.TransactWriteItem) bool {
		return w.ConditionCheck == nil && (w.Put == nil || !strings.HasPrefix(text(w.Put.Item, "sk"), rollups))
	})
}

// mostAsked is how often an instance is asked that may never be over: it may be blocked.
const mostAsked = 150

// ask asks the instance, in all three environments and beside its turns, until it is over, and once more then.
func (m *meddler) ask(ctx context.Context) {
	defer time.Sleep(hangsFor) // what hangs comes back
	for n := 0; n < mostAsked && m.patience(ctx); n++ {
		over := m.over(ctx)
		simhub.Idle(ctx, m.rng.IntN(8))
		m.wrong("query", m.askOnce(ctx, n))
		if over {
			return
		}
		if m.rng.IntN(4) == 0 {
			time.Sleep(time.Second)
		}
	}
}

// askOnce asks one of the queries, in a process that the weather may harm, and wants an answer of what was committed by then: before it was asked, or
// while it was.
func (m *meddler) askOnce(ctx context.Context, n int) error {
	q := []string{"seen", "seen", "spoils", "schedules", "hangs", "nobody's"}[m.rng.IntN(6)]
	o := m.h.Environment(m.rng.IntN(len(m.h.Orchestrators)))
	least, begun := m.committed()
	answer, err := o.QueryInstance(m.h.Scheduler.Exposed(ctx, fmt.Sprint(queryName, n)), provider.QueryRequest{InstanceID: m.first.InstanceID, Name: q})
	most, _ := m.committed()
	if weatherOf(err) {
		return nil
	}
	if e, ok := errors.AsType[*provider.QueryError](err); ok {
		return m.judgeRefusal(e, begun)
	}
	if err != nil {
		return err
	}
	seen := -1
	if err := json.Unmarshal(answer, &seen); err != nil || seen < least || seen > most || q != "seen" && q != "spoils" {
		return errors.Join(err, fmt.Errorf("%s answers %s, and %d to %d outcomes were committed", q, answer, least, most))
	}
	return nil
}

// judgeRefusal says what is wrong with a query's not being answered.
func (m *meddler) judgeRefusal(e *provider.QueryError, begun bool) error {
	verdicts, _ := m.w.found()
	switch want := map[string]provider.QueryCode{"schedules": provider.QueryNotReadOnly, "hangs": provider.QueryHandlerTimedOut, "nobody's": provider.QueryHandlerNotFound}[e.Query]; {
	case e.Code == want, e.Code == provider.QueryNotStarted && !begun, e.Code == provider.QueryBlocked && verdicts > 0:
		return nil
	default:
		return e
	}
}

// committed is how many outcomes history has, and whether the code has begun: beside all that happens, and unseen by it.
func (m *meddler) committed() (outcomes int, begun bool) {
	for e, err := range m.h.Provider.ReadHistory(context.Background(), m.first.InstanceID, m.first.ExecutionID, 0) {
		m.wrong("history", err)
		begun = begun || e.Kind == history.ActivityScheduled
		if e.Kind == history.ActivityCompleted {
			outcomes++
		}
	}
	return outcomes, begun
}

// hardlyAnyTime is how long an instance takes that waits for nothing, where time passes only when nothing goes on.
const hardlyAnyTime = time.Second

// checkAnswers wants the instance to have ended as if nobody had asked: in the same time too, though a handler hung for ten seconds beside it.
func (m *meddler) checkAnswers(ctx context.Context) error {
	in, err := m.h.Provider.ReadInstance(ctx, m.first.InstanceID)
	if err != nil {
		return err
	}
	end, err := m.h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)
	switch took := end.Time.Sub(m.first.CreatedAt); {
	case err != nil:
		return err
	case end.Kind != history.OrchestrationCompleted || string(end.Output) != fmt.Sprint(tallied):
		return fmt.Errorf("it ended with %s %s", end.String(), end.Output)
	case m.calm && took > hardlyAnyTime:
		return fmt.Errorf("it took %v, and waited for nothing but queries", took)
	}
	return nil
}
