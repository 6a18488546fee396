package messages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// callScenarios send updates to other instances and to entities.
func callScenarios() []kit.Scenario {
	return []kit.Scenario{
		{
			Name: "CallsInOrder", Register: kit.Run(callTally, kit.Also("Tallies", kit.Tallies)),
			Check: kit.Returns(fmt.Sprint(seven)),
		},
		{Name: "CallsMissingInstance", Register: kit.Run(callMissing), Check: kit.Returns(history.TypeNotFound)},
		{Name: "CallsItself", Register: kit.Run(callSelf), Check: kit.Returns([]int{1, 2})},
		{
			Name: "Entities", Register: addPurse, Drive: updatePurse,
			Check: kit.Returns("5 update_failed 7 " + history.TypeUpdateRejected),
		},
	}
}

// seven has the expected counts.
var seven = []int{1, 2, 3, 4, 5, 6, 7}

// callTally starts an instance with the first of its updates.
func callTally(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	fs := make([]*perdure.Future[int], len(seven))
	for i := range fs {
		fs[i] = perdure.CallUpdate[int](ctx, ctx.InstanceID()+"/tally", "next", struct{}{},
			perdure.WithStart("Tallies", kit.TallyInput{Of: len(seven)}))
	}
	counts, err := perdure.AwaitAll(ctx, fs)
	return fmt.Sprint(counts), err
}

func callMissing(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	_, err := perdure.CallUpdate[int](ctx, ctx.InstanceID()+"/missing", "next", struct{}{}).Await(ctx)
	return callErrorType(err), nil
}

// callErrorType returns the type of the error of a call.
func callErrorType(err error) string {
	if e, failed := errors.AsType[*perdure.CallUpdateError](err); failed {
		return e.Type
	}
	return fmt.Sprint(err)
}

// callSelf waits for its own handlers, which run concurrently.
func callSelf(ctx *perdure.OrchestrationContext, _ struct{}) ([]int, error) {
	n := 0
	if err := perdure.SetUpdateHandler(ctx, "next", func(ctx *perdure.OrchestrationContext, _ struct{}) (int, error) {
		n++
		return n, nil
	}); err != nil {
		return nil, err
	}
	var results []int
	for range 2 {
		v, err := perdure.CallUpdate[int](ctx, ctx.InstanceID(), "next", struct{}{},
			perdure.WithUpdateID(fmt.Sprint("next ", n))).Await(ctx)
		if err != nil {
			return nil, err
		}
		results = append(results, v)
	}
	return results, nil
}

// wallet is the state of an entity.
type wallet struct{ Coins int }

var errTooFewCoins = errors.New("too few coins")

func putIn(ctx *perdure.OrchestrationContext, p *wallet, coins int) (int, error) {
	left, err := perdure.CallActivity(ctx, kit.Inc, p.Coins).Await(ctx)
	p.Coins = left - 1 + coins
	return p.Coins, err
}

func takeOut(_ *perdure.OrchestrationContext, p *wallet, coins int) (int, error) {
	if p.Coins -= coins; p.Coins < 0 {
		return 0, errTooFewCoins
	}
	return p.Coins, nil
}

func addPurse(r *perdure.Registry, name string) {
	perdure.AddEntity(r, "purse", perdure.Operation("put", putIn), perdure.Operation("take", takeOut))
	perdure.AddOrchestration(r, name, callPurse)
}

// callPurse calls operations of a purse and waits for the event "go".
func callPurse(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	var all []string
	for _, c := range []struct {
		operation string
		coins     int
	}{{"put", 5}, {"take", 9}, {"put", 2}, {"lose", 1}} {
		v, err := perdure.CallEntity[int](ctx, "purse", ctx.InstanceID(), c.operation, c.coins).Await(ctx)
		if err != nil {
			all = append(all, callErrorType(err))
			continue
		}
		all = append(all, strconv.Itoa(v))
	}
	ctx.SetCustomStatus("called")
	_, err := perdure.WaitForExternalEvent[struct{}](ctx, "go").Await(ctx)
	return strings.Join(all, " "), err
}

// updatePurse calls the purse from a client, reads its state, and cancels the entity.
func updatePurse(ctx context.Context, w kit.World, id string) error {
	if err := w.UntilStatus(ctx, id, "called"); err != nil {
		return err
	}
	left, err := w.UntilResponse(func() (json.RawMessage, error) {
		return w.Client.CallEntity(ctx, "purse", id, "take", 3, client.WithUpdateID("t1"))
	})
	if err != nil || string(left) != "4" {
		return errors.Join(fmt.Errorf("got %s coins, want 4", left), err)
	}
	if err := w.UntilQuery(ctx, perdure.EntityInstanceID("purse", id), perdure.EntityStateQuery, struct{}{},
		`{"Coins":4}`); err != nil {
		return err
	}
	if err := w.Client.Cancel(ctx, perdure.EntityInstanceID("purse", id), "no more"); err != nil {
		return err
	}
	return w.Client.RaiseEvent(ctx, id, "go", struct{}{}, client.WithEventID("go"))
}
