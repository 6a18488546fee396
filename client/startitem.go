package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure/internal/offered"
	"github.com/perdure/perdure/provider"
)

// ErrNoStartItem means that the starts of the client's hub cannot be part of another transaction (provider.StartPreparer).
var ErrNoStartItem = errors.New("this hub's starts cannot be part of another transaction")

// StartItem prepares a start for a transaction of the caller's own, so that the caller's data is saved and its orchestration started, or neither:
//
//	start, err := hub.StartItem(ctx, "Fulfil", order)
//	…
//	_, err = table.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
//		TransactItems: append(dynamo.Writes(start), types.TransactWriteItem{Put: putOrder}),
//	})
//	…
//	err = start.Begin(ctx)
//
// It takes what Start takes, with the same errors, and ErrNoStartItem where the hub is none of DynamoDB, and creates nothing. Begin after the transaction makes the instance begin at once; should
// the process die before, the hub's watch finds the instance within minutes. Where the transaction was refused, Refusal tells whether it was for the start.
//
// A repeated order has an idempotency key: its start is an ErrAlreadyStarted, here or from Refusal, and the order is there.
//
// The hub's table has to be in the account and region of the caller's. The caller writes to it: it needs the construct's GrantStartDirect.
// An input that goes to the hub's bucket, being large, is stored by StartItem: the transaction has to come within two days, or a sweep may have deleted it.
// StartItem reads the instance id once, strongly consistent; the start costs six write units more than without the transaction.
func (c *Client) StartItem(ctx context.Context, orchestration string, input any, opts ...StartOption) (provider.PreparedStart, error) {
	preparer, ok := offered.By[provider.StartPreparer](c.hub)
	if !ok {
		return nil, fmt.Errorf("client: start item %q: %w", orchestration, ErrNoStartItem)
	}
	err := onlyStarts(opts)
	if err != nil {
		return nil, fmt.Errorf("client: start item: %w", err)
	}
	s, err := c.startOf(ctx, orchestration, input, opts)
	if err != nil {
		return nil, fmt.Errorf("client: start item: %w", err)
	}

	var prepared provider.PreparedStart
	err = c.call(ctx, callStart, s.InstanceID, orchestration, func(ctx context.Context) error {
		s.TraceParent = traceOf(ctx)
		prepared, err = preparer.PrepareStart(ctx, s)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("client: start item %q: %w", orchestration, err)
	}
	return prepared, nil
}
