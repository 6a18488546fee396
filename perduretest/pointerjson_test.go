package perduretest_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

// price has a MarshalJSON method with a pointer receiver. Without it, price would be stored as {}.
type price struct{ cents int64 }

func (p *price) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]int64{"cents": p.cents})
}

func (p *price) UnmarshalJSON(doc []byte) error {
	var fields map[string]int64
	err := json.Unmarshal(doc, &fields)
	p.cents = fields["cents"]
	return err
}

// quote has a price as a field.
type quote struct{ Price price }

// pointerJSON sends a price as each kind of payload, and returns the received prices.
func pointerJSON(ctx *perdure.OrchestrationContext, in price) (quotes map[string]*price, err error) {
	quotes = map[string]*price{"input": {in.cents}}
	keep := func(by string, p price, failed error) {
		quotes[by], err = &p, errors.Join(err, failed)
	}
	effect := perdure.SideEffect(ctx, func() quote { return quote{price{2}} })
	keep("side effect", effect.Price, nil)
	same := func(_ *perdure.OrchestrationContext, p price) (price, error) { return price{p.cents + 1}, nil }
	err = errors.Join(perdure.SetUpdateHandler(ctx, "bid", same),
		perdure.SetQueryHandler(ctx, "ask", func(p price) (quote, error) { return quote{price{p.cents + 1}}, nil }))
	event, failed := perdure.WaitForExternalEvent[price](ctx, "paid").Await(ctx)
	keep("event", event, failed)
	result, failed := perdure.CallActivityByName[price](ctx, "next", price{4}).Await(ctx)
	keep("argument and result", result, failed)
	_, failed = perdure.CallActivityByName[price](ctx, "fails", quote{price{6}}).Await(ctx)
	details, _ := perdure.ErrorDetails[price](failed)
	keep("details of an error", details, nil)
	sub, failed := perdure.CallSubOrchestrationByName[price](ctx, "sub", price{8}).Await(ctx)
	keep("child", sub, failed)
	ctx.SetCustomStatus(price{9})
	return quotes, err
}

func addPrice(_ context.Context, p price) (price, error) { return price{p.cents + 1}, nil }

func TestPayload_marshalJSONHasPointerReceiver_isUsed(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "all", pointerJSON)
	perdure.AddOrchestration(r, "sub", func(_ *perdure.OrchestrationContext, p price) (price, error) { return p, nil })
	perdure.AddActivity(r, "next", addPrice)
	perdure.AddActivity(r, "fails", func(_ context.Context, q quote) (price, error) {
		return price{}, perdure.NonRetryable(perdure.WithErrorDetails(errors.New("sold out"), q.Price))
	})
	env := perduretest.New(t, r)
	c := env.Client()
	id, err := c.Start(t.Context(), "all", price{1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.WaitForStart(t.Context(), id); err != nil { // its handlers are set then
		t.Fatal(err)
	}
	for call, send := range map[string]func(context.Context, string, string, any) (json.RawMessage, error){
		"bid": func(ctx context.Context, id, name string, in any) (json.RawMessage, error) {
			return c.Update(ctx, id, name, in)
		},
		"ask": c.Query,
	} {
		want := map[string]string{"bid": `{"cents":11}`, "ask": `{"Price":{"cents":11}}`}[call]
		if result, err := send(t.Context(), id, call, price{10}); err != nil || string(result) != want {
			t.Errorf("%s: got %s, error %v, want %s", call, result, err, want)
		}
	}
	if err := c.RaiseEvent(t.Context(), id, "paid", price{3}); err != nil {
		t.Fatal(err)
	}
	status, err := c.Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	got, err := client.Result[map[string]price](status)
	want := map[string]price{
		"input": {1}, "side effect": {2}, "event": {3}, "argument and result": {5}, "details of an error": {6},
		"child": {8},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, error %v, want %v", got, err, want)
	}
	if string(status.CustomStatus) != `{"cents":9}` {
		t.Errorf("got custom status %s", status.CustomStatus)
	}
}
