package client

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/client/internal/hub"
	"github.com/perdure/perdure/client/internal/starting"
	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/provider"
)

// ErrPrepareStartUnsupported means that the client's Backend cannot start instances in a transaction of the caller. See
// provider.StartPreparer.
var ErrPrepareStartUnsupported error = provider.UnsupportedError{Capability: provider.CapabilityPreparedStarts}

// PrepareStart prepares a start that is part of your own DynamoDB transaction. The transaction writes your data and
// starts the orchestration atomically:
//
//	start, err := hub.PrepareStart(ctx, "Fulfil", order, client.WithIdempotencyKey(order.ID))
//	…
//	_, err = table.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
//		TransactItems: append(dynamo.TransactItems(start), types.TransactWriteItem{Put: putOrder}),
//	})
//	…
//	err = start.Wake(ctx)
//
// PrepareStart does not start the instance. Call Wake after the transaction to start the instance immediately. If the
// process dies before that, the sweeper starts the instance within minutes. If the transaction fails, StartError
// reports whether the start was the reason. If a start with the same idempotency key was made before, PrepareStart or
// StartError returns ErrAlreadyStarted.
//
// PrepareStart returns the errors of Start, and ErrPrepareStartUnsupported if the hub does not use DynamoDB. IfExists
// is not supported.
//
// The hub's table must be in the same account and region as yours, and the caller needs the permissions of the CDK
// construct's GrantStartDirect. If the input is stored in the payload store, the transaction must follow within two
// days. PrepareStart costs one strongly consistent read, and the start costs six write units more than a plain Start.
// See docs/guides/transactional-starts.md.
func (c *Client) PrepareStart(
	ctx context.Context, orchestration string, input any, opts ...StartOption,
) (provider.PreparedStart, error) {
	if err := c.requireProvider("PrepareStart"); err != nil {
		return nil, err
	}
	if c.preparer == nil {
		return nil, fmt.Errorf("client: prepare start %q: %w", orchestration, ErrPrepareStartUnsupported)
	}
	o := optionsOf(opts)
	if err := o.RejectIfExists(); err != nil {
		return nil, fmt.Errorf("client: prepare start: %w", err)
	}
	s, err := starting.New(ctx, c.hub, orchestration, input, o)
	if err != nil {
		return nil, fmt.Errorf("client: prepare start: %w", err)
	}

	var prepared provider.PreparedStart
	err = c.hub.Call(ctx, clientcall.Start, s.InstanceID, orchestration, func(ctx context.Context) error {
		s.TraceParent = hub.TraceParent(ctx)
		prepared, err = c.preparer.PrepareStart(ctx, s)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("client: prepare start %q: %w", orchestration, err)
	}
	return prepared, nil
}
