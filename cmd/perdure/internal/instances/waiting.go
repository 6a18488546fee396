package instances

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/describe"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
)

// showProgress prints the status of an instance on stderr while a command waits for it, if stderr is a terminal. The
// returned function stops it.
func showProgress(ctx context.Context, env *cli.Env, cl *client.Client, id string) (stop func()) {
	if !env.Interactive {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var showing sync.WaitGroup
	showing.Go(func() {
		tick := time.NewTicker(cli.ProgressInterval)
		defer tick.Stop()
		for waited := cli.ProgressInterval; ; waited += cli.ProgressInterval {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			s, err := cl.Status(ctx, id)
			if err != nil { // the wait reports errors
				continue
			}
			text := describe.StatusLine(s)
			if len(s.CustomStatus) > 0 {
				text += ", " + string(s.CustomStatus)
			}
			fmt.Fprintf(env.Stderr, "perdure: %s is %s after %s\n",
				term.Clean(id), term.Excerpt(text, term.MaxDetail), term.Duration(waited))
		}
	})
	return func() {
		cancel()
		showing.Wait()
	}
}
