package lambdahandler

import (
	"context"

	"github.com/perdure/perdure/client"
)

// NewClient makes a client of the hub that the process works for, for its activities: to start orchestrations, raise
// events, and read. It reads the variables that NewWorker reads, and PERDURE_TIMERS_URL, which the worker of a queue has,
// with the rights that the client needs, where WorkQueueProps of the construct says Client. A process that polls needs PERDURE_HUB
// alone. The error names every variable that is wrong.
//
// A main makes one and gives it to its activities; it is safe for concurrent use, and calls AWS when it is used, or, in a process that polls, once at
// the beginning. It may not purge: that is for GrantPurgeDirect. Of the options, the logger, the interceptors and the codec count.
func NewClient(ctx context.Context, opts ...Option) (*client.Client, error) {
	b := begin(false, true, opts)
	p, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	return client.New(p, b.clientOptions()...), nil
}
