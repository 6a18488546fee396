package sweeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// errNotProcessed is the outcome of an instance that a step did not process before its time limit expired.
var errNotProcessed = errors.New("dispatch: time limit expired before the instance was processed")

// errStepTimeout is the error of an operation that the time limit of a step interrupted.
var errStepTimeout = errors.New("time limit of the job step exceeded")

// processBatch processes the instances of a batch concurrently until the time limit of the step expires, and returns
// the outcome of each.
func (k jobRunner) processBatch(ctx context.Context, j *provider.Job, share jobShare) []error {
	limited, stop := context.WithTimeout(ctx, share.stepTime)
	defer stop()
	outcomes := make([]error, len(j.Batch))
	indexes := make([]int, len(j.Batch))
	for i := range indexes {
		indexes[i], outcomes[i] = i, errNotProcessed
	}
	forEach(limited, slices.Values(indexes), share.concurrency, func(i int) {
		err := k.processInstance(limited, j, j.Batch[i])
		if err != nil && limited.Err() != nil {
			id := j.Batch[i].InstanceID
			err = &provider.Error{Op: string(j.Operation), InstanceID: id, Retryable: true, Err: errStepTimeout}
		}
		outcomes[i] = err
	})
	return outcomes
}

// processInstance applies the operation of a job to the matched incarnation of an instance. It does nothing if the
// incarnation is deleted, or if it has ended and the job would end it.
func (k jobRunner) processInstance(ctx context.Context, j *provider.Job, target provider.Target) error {
	in, err := k.Provider.ReadInstance(ctx, target.InstanceID)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return nil
	case err != nil:
		return err
	case !in.CreatedAt.Equal(target.CreatedAt):
		return nil // a later incarnation
	case j.Operation == provider.OperationPurge && in.Status == provider.StatusDeleting &&
		target.Tries == jobMaxTries-1:
		return nil // the instance is large, and the repair of deletions continues
	case j.Operation == provider.OperationPurge:
		requester := provider.WithRequester(ctx, j.RequestedBy)
		return k.Provider.DeleteIncarnation(requester, in.InstanceID, in.StartID, j.Force)
	case in.Status.Terminal():
		return nil
	}
	m := provider.Message{InstanceID: in.InstanceID, StartID: in.StartID, Text: j.Message, RequestedBy: j.RequestedBy}
	switch j.Operation {
	case provider.OperationCancel:
		m.Kind, m.Reason = provider.MessageCancel, string(perdure.ReasonRequested)
		m.RequestedBy = cmp.Or(j.RequestedBy, history.RequestedByClient)
	case provider.OperationTerminate:
		m.Kind = provider.MessageTerminate
	default:
		return fmt.Errorf("dispatch: operation %q is not supported by this release", j.Operation)
	}
	return k.Provider.EnqueueForOrchestrator(ctx, m)
}
