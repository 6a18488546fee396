package lambdahandler

import (
	"context"

	"github.com/perdure/perdure/client"
)

// NewClient returns a client of the hub that this process works for, for use in activities. Create one client in main
// and share it: it is safe for concurrent use.
//
// NewClient reads the same environment variables as NewWorker, and PERDURE_TIMERS_URL. The worker of a queue has this
// variable, and the permissions that the client needs, if WorkQueueProps.Client of the CDK construct is set. A process
// that polls needs only PERDURE_HUB, and NewClient then calls AWS once to find the hub. NewClient uses the logger, the
// interceptors and the codec of opts. It returns an error that names every invalid variable.
//
// The client cannot purge instances; that needs GrantPurgeDirect.
func NewClient(ctx context.Context, opts ...Option) (*client.Client, error) {
	b := begin(false, true, opts)
	p, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	return client.New(p, b.clientOptions()...), nil
}
