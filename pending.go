package perdure

import "errors"

// ErrPending is what an activity returns that has handed its token (ActivityInfo.Token) to somebody who completes it: a
// person, another service, a queue. The attempt goes on without a worker: its result, failure and heartbeats come with the
// token. Its start-to-close time, heartbeat timeout and schedule-to-close time hold as before, and so does its retry
// policy: the next attempt runs the function again, with another token. Without a limit it waits for its token for ever.
//
// The token may be used before the function has returned. The function should hand it over last: where its process dies
// between that and the return it runs again, with the same token. An error that wraps ErrPending counts as one.
var ErrPending = errors.New("perdure: the activity is completed from outside")
