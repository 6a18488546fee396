package memhub

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// instances stores the instances, and the data that outlives them, by instance ID.
type instances struct {
	*base

	histories *histories
	byID      map[string]*identity
}

// identity contains all data of an instance ID. Most of the data outlives the instance.
type identity struct {
	instance *instance // nil if the ID is free
	// spent are the StartIDs of deleted instances. rejected are StartIDs that must never create an instance (R10).
	spent, rejected map[string]bool
	// purgedAt and watermark belong to the last deleted instance (R3).
	purgedAt  time.Time
	watermark provider.Position
	// events are the rejected events of other instances (R24). senders are their executions, the latest last.
	events  provider.RejectedEvents
	senders []string
}

// instance is an instance with its executions, the oldest first.
type instance struct {
	provider.Instance

	executions []*execution
	// written is the sequence of the last segment from which the status was written (R9).
	written int64
	// wakeAt is the time at which the sweeper next finds a pending instance.
	wakeAt time.Time
}

// current returns the current execution.
func (in *instance) current() *execution { return in.executions[len(in.executions)-1] }

// identity returns the entry of an instance ID and creates it if necessary.
func (st *instances) identity(instanceID string) *identity {
	id := st.byID[instanceID]
	if id == nil {
		id = &identity{spent: map[string]bool{}, rejected: map[string]bool{}}
		st.byID[instanceID] = id
	}
	return id
}

// find returns an instance, or ErrNotFound.
func (st *instances) find(instanceID string) (*instance, error) {
	if id := st.byID[instanceID]; id != nil && id.instance != nil {
		return id.instance, nil
	}
	return nil, fmt.Errorf("fake: instance %q: %w", instanceID, provider.ErrNotFound)
}

// addExecution adds an execution and makes it the current one.
func (st *instances) addExecution(in *instance, executionID, previous string, first provider.Segment) {
	first.Events = copyEvents(first.Events)
	start := &first.Events[0]
	x := &execution{
		Execution:  provider.Execution{ExecutionID: executionID, Number: start.Number, StartedAt: start.Time},
		instanceID: in.InstanceID, previous: previous, segments: []provider.Segment{first},
	}
	st.histories.byID[executionID] = x
	in.executions = append(in.executions, x)
	in.ExecutionID, in.ExecutionNumber = executionID, start.Number
}

// ReadInstance implements provider.Instances.
func (st *instances) ReadInstance(ctx context.Context, instanceID string) (provider.Instance, error) {
	return callFor(ctx, st.base, func() (provider.Instance, error) {
		in, err := st.find(instanceID)
		if err != nil {
			return provider.Instance{}, err
		}
		return in.Instance, nil
	})
}

// ListExecutions implements provider.Instances.
func (st *instances) ListExecutions(ctx context.Context, instanceID string) iter.Seq2[provider.Execution, error] {
	return func(yield func(provider.Execution, error) bool) {
		if _, err := st.ReadInstance(ctx, instanceID); err != nil {
			yield(provider.Execution{}, err)
			return
		}
		all := sequence(ctx, st.base, func() (all []provider.Execution) {
			if in, err := st.find(instanceID); err == nil {
				for _, x := range slices.Backward(in.executions) {
					all = append(all, x.Execution)
				}
			}
			return all
		})
		all(yield)
	}
}

// ReadOrchestration implements provider.Orchestrations.
func (st *instances) ReadOrchestration(
	ctx context.Context, item *provider.OrchestrationItem, c provider.Consistency,
) (*provider.Orchestration, error) {
	return callFor(ctx, st.base, func() (*provider.Orchestration, error) {
		x, err := st.executionFor(item)
		if err != nil {
			return nil, err
		}
		return x.orchestration(c), nil
	})
}

// executionFor returns the execution that the messages name, or the current one.
func (st *instances) executionFor(item *provider.OrchestrationItem) (*execution, error) {
	named := ""
	for i := range item.Messages {
		named = cmp.Or(item.Messages[i].ExecutionID, named)
	}
	if x := st.histories.byID[named]; x != nil && !x.erased && x.instanceID == item.InstanceID {
		if s := x.state(0); s.Last != history.OrchestrationContinuedAsNew {
			return x, nil
		}
	}
	in, err := st.find(item.InstanceID)
	if err != nil {
		return nil, err
	}
	return in.current(), nil
}

// headOf returns the current execution of an instance if head is its head, or ErrConflict.
func (st *instances) headOf(instanceID string, head provider.Head) (*instance, *execution, error) {
	in, err := st.find(instanceID)
	if err == nil {
		x := in.current()
		if x.ExecutionID == head.ExecutionID && int64(len(x.segments)) == head.Segment+1 {
			return in, x, nil
		}
	}
	return nil, nil, fmt.Errorf("fake: instance %q: segment %d of execution %s: %w", instanceID, head.Segment,
		head.ExecutionID, provider.ErrConflict)
}

// withStatus returns the instances with a status, sorted by ID.
func (st *instances) withStatus(s provider.RuntimeStatus) (found []*instance) {
	for _, id := range st.byID {
		if id.instance != nil && id.instance.Status == s {
			found = append(found, id.instance)
		}
	}
	slices.SortFunc(found, func(a, b *instance) int { return strings.Compare(a.InstanceID, b.InstanceID) })
	return found
}
