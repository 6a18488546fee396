package lambdahandler

import (
	"context"

	"github.com/perdure/perdure/client"
)

// NewClient returns a client of the hub of this process, for use in activities. The client is safe for concurrent use.
// Create one client in main and share it.
//
// NewClient reads the same environment variables as NewWorker, and PERDURE_TIMERS_URL. If WorkQueueProps.Client of the
// CDK construct is set, the worker of a queue has this variable and the permissions that the client needs. A process
// that polls needs only PERDURE_HUB. NewClient then calls AWS once to find the hub. NewClient uses the logger, the
// interceptors and the codec of opts. It returns an error that names every invalid variable.
//
// The client needs GrantPurgeDirect to purge instances.
func NewClient(ctx context.Context, opts ...Option) (*client.Client, error) {
	b := begin(false, true, opts)
	p, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	return client.New(p, b.clientOptions()...), nil
}
