package lambdahandler

import (
	"context"
	"os"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/rehearsal"
)

// rehearsal makes the function that replays histories for `perdure verify`, by its standard input and output. What the code prints goes to
// standard error meanwhile.
func (b *binary) rehearsal(r *perdure.Registry) *Function {
	return &Function{log: b.log, poll: func(context.Context) error {
		out := os.Stdout
		os.Stdout = os.Stderr // the answers must not be mixed with what the code prints
		return rehearsal.Serve((*registry.Registry)(r), b.codecs, rehearsal.BinarySide(os.Stdin, out))
	}}
}
