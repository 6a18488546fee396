package scenarios

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

// calling are orchestrations that update each other, and entities.
func calling() []Scenario {
	return []Scenario{
		{Name: "CallsInOrder", Register: body(callsTally, also("Tallies", tallies)), Check: gives(fmt.Sprint(seven))},
		{Name: "CallsNobody", Register: body(callsNobody), Check: gives(history.TypeNotFound)},
		{Name: "CallsItself", Register: body(callsItself), Check: gives([]int{1, 2})},
		{
			Name: "Entities", Register: entities, Drive: usesPurse,
			Check: gives("5 update_failed 7 " + history.TypeUpdateRejected),
		},
	}
}

var seven = []int{1, 2, 3, 4, 5, 6, 7}

// tally is how far a Tallies instance has come.
type tally struct {
	Count, Of int
}

// tallies counts updates one at a time, each with an activity, and continues as new in between.
func tallies(ctx *perdure.OrchestrationContext, t tally) (int, error) {
	before := t.Count
	err := perdure.SetUpdateHandler(ctx, "next", func(ctx *perdure.OrchestrationContext, _ struct{}) (int, error) {
		n, err := perdure.CallActivity(ctx, inc, t.Count).Await(ctx)
		if err != nil {
			return 0, err
		}
		t.Count = n
		perdure.RaiseEvent(ctx, ctx.InstanceID(), "counted", n)
		return n, nil
	}, perdure.Serialized())
	for err == nil && t.Count < t.Of {
		if _, err = perdure.WaitForExternalEvent[int](ctx, "counted").Await(ctx); err == nil && t.Count > before+1 &&
			t.Count < t.Of {
			if err = perdure.AwaitUpdateHandlers(ctx); err == nil {
				return perdure.ContinueAsNew[int](ctx, t)
			}
		}
	}
	return t.Count, err
}

// callsTally starts who counts by the first of its updates.
func callsTally(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	fs := make([]*perdure.Future[int], len(seven))
	for i := range fs {
		fs[i] = perdure.CallUpdate[int](ctx, ctx.InstanceID()+"/tally", "next", struct{}{},
			perdure.WithStart("Tallies", tally{Of: len(seven)}))
	}
	if err := perdure.WhenAll(ctx, perdure.Awaitables(fs)...); err != nil {
		return "", err
	}
	var counts []int
	for _, f := range fs {
		n, err := f.Await(ctx)
		if err != nil {
			return "", err
		}
		counts = append(counts, n)
	}
	return fmt.Sprint(counts), nil
}

func callsNobody(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	_, err := perdure.CallUpdate[int](ctx, ctx.InstanceID()+"/nobody", "next", struct{}{}).Await(ctx)
	return callTypeOf(err), nil
}

// callTypeOf is the type of the error of a call.
func callTypeOf(err error) string {
	if e, failed := errors.AsType[*perdure.CallUpdateError](err); failed {
		return e.Type
	}
	return fmt.Sprint(err)
}

// callsItself waits for its own handlers, which run beside it.
func callsItself(ctx *perdure.OrchestrationContext, _ struct{}) ([]int, error) {
	n := 0
	if err := perdure.SetUpdateHandler(ctx, "next", func(ctx *perdure.OrchestrationContext, _ struct{}) (int, error) {
		n++
		return n, nil
	}); err != nil {
		return nil, err
	}
	var heard []int
	for range 2 {
		v, err := perdure.CallUpdate[int](ctx, ctx.InstanceID(), "next", struct{}{},
			perdure.WithUpdateID(fmt.Sprint("next ", n))).Await(ctx)
		if err != nil {
			return nil, err
		}
		heard = append(heard, v)
	}
	return heard, nil
}

// purse is the state of an entity.
type purse struct{ Coins int }

var errTooFewCoins = errors.New("too few coins")

func putIn(ctx *perdure.OrchestrationContext, p *purse, coins int) (int, error) {
	left, err := perdure.CallActivity(ctx, inc, p.Coins).Await(ctx)
	p.Coins = left - 1 + coins
	return p.Coins, err
}

func takeOut(_ *perdure.OrchestrationContext, p *purse, coins int) (int, error) {
	if p.Coins -= coins; p.Coins < 0 {
		return 0, errTooFewCoins
	}
	return p.Coins, nil
}

func entities(r *perdure.Registry, name string) {
	perdure.AddEntity(r, "purse", perdure.Operation("put", putIn), perdure.Operation("take", takeOut))
	perdure.AddOrchestration(r, name, callsPurse)
}

// callsPurse calls operations of a purse, and waits until a client has done so, too.
func callsPurse(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	var all []string
	for _, c := range []struct {
		operation string
		coins     int
	}{{"put", 5}, {"take", 9}, {"put", 2}, {"lose", 1}} {
		v, err := perdure.CallEntity[int](ctx, "purse", ctx.InstanceID(), c.operation, c.coins).Await(ctx)
		if err != nil {
			all = append(all, callTypeOf(err))
			continue
		}
		all = append(all, strconv.Itoa(v))
	}
	ctx.SetCustomStatus("called")
	_, err := perdure.WaitForExternalEvent[struct{}](ctx, "go").Await(ctx)
	return strings.Join(all, " "), err
}

// usesPurse takes coins from a client, looks what is left, and ends the entity.
func usesPurse(ctx context.Context, w World, id string) error {
	if err := w.untilStatus(ctx, id, "called"); err != nil {
		return err
	}
	var err error
	for range looks {
		var left []byte
		if left, err = w.Client.CallEntity(ctx, "purse", id, "take", 3, client.WithUpdateID("t1")); err == nil &&
			string(left) != "4" {
			return fmt.Errorf("%s coins are left, want 4", left)
		}
		if err == nil {
			break
		}
		w.Pass(w.Tick / 4)
	}
	if err != nil {
		return err
	}
	if err := w.untilAnswer(ctx, perdure.EntityInstanceID("purse", id), perdure.EntityStateQuery, struct{}{},
		`{"Coins":4}`); err != nil {
		return err
	}
	if err := w.Client.Cancel(ctx, perdure.EntityInstanceID("purse", id), "no more"); err != nil {
		return err
	}
	return w.Client.RaiseEvent(ctx, id, "go", struct{}{}, client.WithEventID("go"))
}
