// Package client starts, reads and manages orchestration instances from programs outside of orchestrations. The HTTP
// API and the command line are built on it.
//
// A Client calls its provider directly and needs no server. With provider/dynamo it needs AWS credentials:
//
//	hub, err := dynamo.Open(ctx, "orders")
//	if err != nil {
//		return err
//	}
//	c := client.New(hub)
//	id, err := c.Start(ctx, "fulfil-order", order, client.WithIdempotencyKey(order.ID))
//	if err != nil {
//		return err
//	}
//	status, err := c.Wait(ctx, id)
//	if err != nil {
//		return err
//	}
//	receipt, err := client.Result[Receipt](status)
//
// Dial returns a Client that calls the HTTP API instead (package httpapi), and Open selects one of both.
//
// # Errors
//
//   - A *provider.FieldError is invalid input. It names the field.
//   - Sentinels such as ErrNotFound and ErrEnded are conditions that a program can handle.
//   - A *perdure.PayloadTooLargeError or *perdure.PayloadError is a payload that is too large or cannot be read.
//   - A *QueryError, *UpdateError or *TokenError is a query, update or completion token that failed.
//   - A *provider.Error is any other failure. It reports whether the call can be repeated.
//
// # Lists
//
// List, Executions, History, Cancellations and Schedules.List return iterators over the whole list. An iterator ends
// with the first error. Collect returns its items as a slice.
//
// ListPage, ExecutionsPage, CancellationsPage and Schedules.ListPage return one page, with the cursor of the next page.
package client
