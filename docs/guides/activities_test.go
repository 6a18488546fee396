package guides_test

import (
	"context"
	"errors"
	"log"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/lambdahandler"
	"github.com/perdure/perdure/perduretest"
)

// ImportRows imports a file in batches. A later attempt continues after the last batch that was reported.
func ImportRows(ctx context.Context, file File) (rows int, err error) {
	next, _ := perdure.HeartbeatDetails[int](ctx)
	for ; next < file.Batches; next++ {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx) // the reason, which ctx.Err does not have
		}
		if err := table.importBatch(ctx, file, next); err != nil {
			return 0, err
		}
		perdure.Heartbeat(ctx, next+1)
	}
	return next, nil
}

// File has a number of batches of rows.
type File struct {
	Name    string
	Batches int
}

// importTable takes a second for each batch. Its first import of batch 2 fails.
type importTable struct{ imports []int }

var table = &importTable{}

var errUnreachable = errors.New("the table is unreachable")

func (t *importTable) importBatch(ctx context.Context, _ File, batch int) error {
	t.imports = append(t.imports, batch)
	if batch == 2 && len(t.imports) == 3 {
		return errUnreachable
	}
	return wait(ctx, time.Second)
}

// wait sleeps until the context ends.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Upload aborts an incomplete upload. Its context has ended by then, so the cleanup uses a context of its own.
func Upload(ctx context.Context, file File) (rows int, err error) {
	defer func() {
		if err != nil {
			// less than the grace period
			cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			err = errors.Join(err, abortUpload(cleanup, file))
		}
	}()
	return file.Batches, wait(ctx, time.Hour)
}

var aborted []string

func abortUpload(ctx context.Context, file File) error {
	if ctx.Err() == nil {
		aborted = append(aborted, file.Name)
	}
	return ctx.Err()
}

// Importer has activities that start orchestrations.
type Importer struct{ Hub *client.Client }

func (i *Importer) Registry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "start-imports", i.StartImports)
	perdure.AddActivity(r, "import-rows", ImportRows)
	perdure.AddActivity(r, "upload", Upload)
	perdure.AddOrchestration(r, "import-files", ImportFiles)
	return r
}

// StartImports can run twice: the idempotency key starts each import once.
func (i *Importer) StartImports(ctx context.Context, files []File) (none struct{}, err error) {
	for _, file := range files {
		call := []string{"import-rows", file.Name}
		_, err := i.Hub.Start(ctx, "import-files", call, client.WithIdempotencyKey(file.Name))
		if err != nil {
			return none, err
		}
	}
	return none, nil
}

// ImportFiles calls an activity with a file of four batches.
func ImportFiles(ctx *perdure.OrchestrationContext, call []string) (int, error) {
	retry := perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 2})
	return perdure.CallActivityByName[int](ctx, call[0], File{call[1], 4}, retry).Await(ctx)
}

// workerMain is the main function of a worker whose activities use a client.
func workerMain() {
	hub, err := lambdahandler.NewClient(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	lambdahandler.StartWorker((&Importer{Hub: hub}).Registry())
}

var _ = workerMain

func TestHeartbeat_secondAttempt_continuesAfterLastBatch(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, (&Importer{}).Registry())
	if got := run[int](t, env, "import-files", []string{"import-rows", "prices.csv"}); got != 4 {
		t.Errorf("imported %d batches", got)
	}
	if want := []int{0, 1, 2, 2, 3}; !slices.Equal(table.imports, want) {
		t.Errorf("imported batches %v, want %v", table.imports, want)
	}
}

func TestActivity_cancelled_cleansUpInGracePeriod(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, (&Importer{}).Registry())
	id, err := env.Client().Start(t.Context(), "import-files", []string{"upload", "photos.zip"})
	if err != nil {
		t.Fatal(err)
	}
	env.Advance(time.Minute)
	if err := env.Client().Cancel(t.Context(), id, "wrong file"); err != nil {
		t.Fatal(err)
	}
	env.Advance(time.Minute)
	s, err := env.Client().Status(t.Context(), id)
	if err != nil || s.Status != client.StatusCancelled || len(aborted) != 1 {
		t.Errorf("%s, aborted %q, %v", s.Status, aborted, err)
	}
}
