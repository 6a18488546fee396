package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/perdure/perdure"
)

// order is the input of the orchestration "order".
type order struct {
	Customer string `json:"customer"`
	Cents    int    `json:"cents"`
}

// approval is the data of the event "approved".
type approval struct {
	By string `json:"by"`
}

// receipt is the output of the orchestration "order".
type receipt struct {
	order

	ApprovedBy string `json:"approvedBy"`
	Charge     string `json:"charge"`
}

// carrier receives the completion tokens of pickups, like a service that completes them later.
type carrier struct {
	mu     sync.Mutex
	tokens map[string]chan string // by instance ID
}

func (c *carrier) registry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "charge", charge)
	perdure.AddActivity(r, "pickup", c.pickup)
	perdure.AddOrchestration(r, "order", fulfil)
	perdure.AddOrchestration(r, "parcel", func(ctx *perdure.OrchestrationContext, _ any) (string, error) {
		return perdure.CallActivity(ctx, c.pickup, ctx.InstanceID()).Await(ctx)
	})
	return r
}

// fulfil charges an order after its approval. The query "price" and the update "reprice" read and change its price.
func fulfil(ctx *perdure.OrchestrationContext, o order) (receipt, error) {
	err := perdure.SetQueryHandler(ctx, "price", func(any) (int, error) { return o.Cents, nil })
	if err != nil {
		return receipt{}, err
	}
	reprice := func(_ *perdure.OrchestrationContext, cents int) (int, error) {
		before := o.Cents
		o.Cents = cents
		return before, nil
	}
	if err := perdure.SetUpdateHandler(ctx, "reprice", reprice); err != nil {
		return receipt{}, err
	}
	approved, err := perdure.WaitForExternalEvent[approval](ctx, "approved").Await(ctx)
	if err != nil {
		return receipt{}, err
	}
	charged, err := perdure.CallActivity(ctx, charge, o).Await(ctx)
	return receipt{o, approved.By, charged}, err
}

func charge(_ context.Context, o order) (string, error) {
	return fmt.Sprintf("%d cents from %s", o.Cents, o.Customer), nil
}

// pickup passes its completion token to the carrier.
func (c *carrier) pickup(ctx context.Context, id string) (string, error) {
	select {
	case c.tokenOf(id) <- perdure.ActivityInfoFrom(ctx).CompletionToken:
	default: // an earlier delivery has sent the same token
	}
	return "", perdure.ErrPending
}

// tokenOf returns the channel for the token of an instance.
func (c *carrier) tokenOf(id string) chan string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tokens[id] == nil {
		c.tokens[id] = make(chan string, 1)
	}
	return c.tokens[id]
}

// serveToken waits for the token of an instance and returns it.
func (c *carrier) serveToken(w http.ResponseWriter, r *http.Request) {
	select {
	case token := <-c.tokenOf(r.PathValue("id")):
		_, _ = io.WriteString(w, token)
	case <-r.Context().Done():
	}
}
