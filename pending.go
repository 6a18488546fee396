package perdure

import "errors"

// ErrPending is returned by an activity that uses asynchronous completion: the activity has passed its completion token
// (ActivityInfo.CompletionToken) to a person or another service, which completes it later. Results, failures and
// heartbeats of the attempt then come with the token. The start-to-close, heartbeat and schedule-to-close timeouts and
// the retry policy still apply. A retry runs the function again with another token. Without a timeout the attempt waits
// forever.
//
// The token can be used before the function has returned. Pass the token on last: if the process dies after that and
// before the return, the function runs again with the same token. An error that wraps ErrPending has the same effect.
// See docs/guides/asynchronous-completion.md.
var ErrPending = errors.New("perdure: result pending; waiting for asynchronous completion")
