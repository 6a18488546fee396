// Package client starts, reads and manages orchestration instances from programs outside of orchestrations. The HTTP
// API and the command line use this package.
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
//   - A *provider.FieldError means that the input is invalid. It names the field.
//   - Sentinel errors such as ErrNotFound and ErrEnded report conditions that a program can handle.
//   - A *perdure.PayloadTooLargeError or *perdure.PayloadError means that a payload is too large or cannot be read.
//   - A *QueryError, *UpdateError or *TokenError means that a query, an update or a completion token failed.
//   - A *provider.Error reports any other failure, and whether the call can be repeated.
//
// # Lists
//
// List, Executions, History, Cancellations and Schedules.List return iterators over the whole list. An iterator ends
// with the first error. Collect returns its items as a slice.
//
// ListPage, ExecutionsPage, CancellationsPage and Schedules.ListPage return one page, with the cursor of the next page.
package client
