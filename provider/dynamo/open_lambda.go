//go:build perdure_lambda

package dynamo

import (
	"context"
	"fmt"
)

// Open always returns an error in binaries that are built with the tag perdure_lambda. The tag excludes the SSM client
// and the SDK's credential chain, which functions of the stack do not need. Build a function without the tag if its
// activities open another hub by name.
func Open(_ context.Context, hub string, _ ...Option) (*Provider, error) {
	return nil, fmt.Errorf("dynamo: open hub %q: this binary was built for Lambda, with the tag perdure_lambda; "+
		"build it without the tag", hub)
}
