package perdure_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// copied is the progress of a copy.
type copied struct{ Files int }

// copyFiles continues where the last attempt failed.
func copyFiles(ctx context.Context, files []string) (string, error) {
	done, again := perdure.HeartbeatDetails[copied](ctx)
	from := done.Files
	for n := from; n < len(files); n++ {
		if n == 2 && !again {
			return "", errors.New("the network is down")
		}
		// … copy files[n] …
		perdure.Heartbeat(ctx, copied{n + 1})
	}
	return fmt.Sprintf("copied %q, the others earlier", files[from:]), nil
}

func backup(ctx *perdure.OrchestrationContext, files []string) (string, error) {
	return perdure.CallActivity(ctx, copyFiles, files,
		perdure.WithHeartbeatTimeout(time.Minute),
		perdure.WithScheduleToCloseTimeout(24*time.Hour),
		perdure.WithRetry(perdure.RetryPolicy{InitialInterval: 10 * time.Millisecond})).Await(ctx)
}

func ExampleHeartbeat() {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "copy-files", copyFiles)
	perdure.AddOrchestration(r, "backup", backup)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "backup", []string{"a", "b", "c"}))
	fmt.Println(must(client.Result[string](must(c.Wait(ctx, id)))))
	// Output: copied ["c"], the others earlier
}
