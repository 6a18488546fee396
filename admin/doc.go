// Package admin operates a task hub. It manages dead letters and bulk jobs, repairs a hub after lost messages or a
// restore, cleans up the payload store, and estimates costs. Applications use package client. The HTTP API and the
// command line use both packages.
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
// Dial returns a Client that calls the HTTP API instead. Open selects between New and Dial by the environment.
//
// # Errors
//
//   - A *provider.FieldError means that the input is invalid. It names the field.
//   - provider.ErrNotFound means that an instance or job does not exist.
//   - ErrDeadLettersUnsupported and ErrReconcileUnsupported report that the Backend lacks the operation.
//   - A *provider.Error reports any other failure, and whether the call can be repeated.
package admin
