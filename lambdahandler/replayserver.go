package lambdahandler

import (
	"context"
	"os"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/replaycheck"
)

// replayServer returns the function that replays histories for `perdure verify`, over its standard input and output. It
// redirects the output of the code to standard error.
func (b *binary) replayServer(r *perdure.Registry) *Function {
	return &Function{log: b.log, poll: func(context.Context) error {
		out := os.Stdout
		os.Stdout = os.Stderr // the code must not write between the responses
		return replaycheck.Serve((*registry.Registry)(r), b.codecs, replaycheck.NewBinaryConn(os.Stdin, out))
	}}
}
