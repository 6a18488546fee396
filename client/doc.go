// Package client starts orchestrations, reads their state, and ends and deletes them: the entry for a program that is
// not itself an orchestration. The HTTP API and the command line are built on it.
//
// A Client calls a provider directly, so it needs what the provider needs (for provider/dynamo: AWS credentials) and no
// server. Bad input is a *provider.FieldError that names the field; the sentinels (ErrNotFound, ErrTerminal and so on)
// are the other conditions that a program may act on; a payload that is too large or cannot be read, and a query, an update
// or a token that comes to nothing, have errors of their own (*perdure.PayloadTooLargeError, *perdure.PayloadError,
// *QueryError, *UpdateError, *TokenError); any other failure is a *provider.Error that says whether the same call is worth
// repeating.
//
// # Lists
//
// List, Executions, History, Cancellations, Jobs and Schedules return iterators over the whole list. An iterator ends with the first error; Collect
// makes a slice of it. ListPage, ExecutionsPage, CancellationsPage and SchedulesPage are for programs that hand a list on in pages: each takes a Paging
// and returns a Page with the cursor of the next one. Pending is no list: it shows one moment, cut to a limit.
package client
