package lambdahandler

import (
	"context"
	"os"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/rehearsal"
)

// rehearsal returns the function that replays histories for `perdure verify`, which it reads from standard input.
// Output of the user's code goes to standard error.
func (b *binary) rehearsal(r *perdure.Registry) *Function {
	return &Function{log: b.log, poll: func(context.Context) error {
		out := os.Stdout
		os.Stdout = os.Stderr // standard output is for the results only
		return rehearsal.Serve((*registry.Registry)(r), b.codecs, rehearsal.BinarySide(os.Stdin, out))
	}}
}
