package describe

import (
	"context"
	"errors"
	"sync"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/httpapi"
)

// MaxChildReads is the maximum number of children that ReadChildren reads.
const MaxChildReads = 10

// statusNotFound is the status of an instance that does not exist: its start has not been processed, or it was purged.
const statusNotFound = "not found"

// Children maps the instance IDs of children to texts that describe their statuses.
type Children map[string]string

// text returns the status of a child, or a dash if it was not read.
func (s Children) text(instanceID string) string { return term.OrDash(s[instanceID]) }

// ReadChildren reads the statuses of the first MaxChildReads children among the pending tasks, concurrently. It omits
// children that it cannot read.
func ReadChildren(ctx context.Context, cl *client.Client, p *httpapi.Pending) Children {
	var ids []string
	for _, x := range pendingItems(p) {
		if x.Kind == client.PendingSubOrchestration && !x.NextAttemptAt.After(p.ReadAt) && len(ids) < MaxChildReads {
			ids = append(ids, x.InstanceID)
		}
	}

	texts := make([]string, len(ids))
	var reads sync.WaitGroup
	for i, id := range ids {
		reads.Go(func() {
			texts[i], _ = ReadStatus(ctx, cl, id)
		})
	}
	reads.Wait()

	children := Children{}
	for i, id := range ids {
		children[id] = texts[i]
	}
	return children
}

// ReadStatus returns a text for the status of an instance, or statusNotFound if the instance does not exist. If the
// read fails, it returns the error.
func ReadStatus(ctx context.Context, cl *client.Client, instanceID string) (string, error) {
	s, err := cl.Status(ctx, instanceID)
	if errors.Is(err, client.ErrNotFound) {
		return statusNotFound, nil
	}
	return string(s.Status), err
}

// pendingItems returns the pending tasks, or nil if they are unknown.
func pendingItems(p *httpapi.Pending) []client.PendingItem {
	if p == nil || p.Pending == nil {
		return nil
	}
	return p.Items
}
