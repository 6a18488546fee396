//go:build perdure_lambda

package dynamo

import (
	"context"
	"fmt"
)

// Open is left out of binaries that are built with the tag perdure_lambda, with the client of SSM and the SDK's chain of credentials: it
// returns an error that says so. Functions of the stack do not need it. A function whose activities open another hub by its name is built without the tag.
func Open(_ context.Context, hub string, _ ...Option) (*Provider, error) {
	return nil, fmt.Errorf("dynamo: open hub %q: this binary was built for Lambda, with the tag perdure_lambda; "+
		"build it without the tag", hub)
}
