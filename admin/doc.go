// Package admin operates a task hub: dead letters, bulk jobs, repair after lost messages or a restore, clean-up of the
// payload store, and cost estimates. Applications use package client. The HTTP API and the command line use both.
//
// A Client calls its provider directly and needs no server. With provider/dynamo it needs AWS credentials:
//
//	hub, err := dynamo.Open(ctx, "orders")
//	if err != nil {
//		return err
//	}
//	a := admin.New(hub)
//	job, err := a.StartJob(ctx, admin.JobRequest{
//		Operation: admin.OperationPurge,
//		Filter:    admin.Filter{Orchestration: "fulfil-order", UpdatedBefore: time.Now().AddDate(0, -1, 0)},
//	})
//
// Package provider/dynamo/hubadmin pauses a hub and checks its AWS resources.
//
// Dial returns a Client that calls the HTTP API instead.
//
// # Errors
//
//   - A *provider.FieldError is invalid input. It names the field.
//   - provider.ErrNotFound is an instance or job that does not exist.
//   - ErrDeadLettersUnsupported and ErrReconcileUnsupported report that the Backend lacks the operation.
//   - A *provider.Error is any other failure. It reports whether the call can be repeated.
package admin
