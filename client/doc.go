// Package client starts orchestrations, tells how they stand, and ends and deletes them: the door of a program that is not itself an
// orchestration.
// The HTTP API and the command line are made of it.
//
// A Client talks to a provider directly, so it needs what the provider needs (for provider/dynamo: AWS credentials) and no
// server. Bad input is a *provider.FieldError that names the field; the sentinels (ErrNotFound, ErrTerminal and so on)
// say what else a program may act on; any other failure is a *provider.Error that says whether the
// same call is worth repeating.
package client
