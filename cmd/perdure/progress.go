package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/perdure/perdure/client"
)

// progressEvery is the interval between progress lines on a terminal.
const progressEvery = 10 * time.Second

// progress prints the status of an instance on stderr while a command waits for it, if stderr is a terminal. The
// returned function stops it.
func progress(ctx context.Context, c *command, cl *client.Client, id string) (stop func()) {
	if !c.attended {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var showing sync.WaitGroup
	showing.Go(func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for waited := progressEvery; ; waited += progressEvery {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			s, err := cl.Status(ctx, id)
			if err != nil { // the wait itself goes on, and says what is wrong
				continue
			}
			text := standing(s)
			if len(s.CustomStatus) > 0 {
				text += ", " + string(s.CustomStatus)
			}
			fmt.Fprintf(c.err, "perdure: %s is %s after %s\n", clean(id), excerpt(text, longestDetail), span(waited))
		}
	})
	return func() {
		cancel()
		showing.Wait()
	}
}

// isTerminal reports whether what is written to w is shown to a person.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
