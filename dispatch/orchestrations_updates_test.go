package dispatch_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

// calling configures an orchestration that sends updates "add" with consecutive numbers, starting with 0, to another
// instance.
type calling struct {
	To    string
	Calls int
	// ID is the ID of all updates, which makes them one update.
	ID string
	tallying
}

// tallying configures an orchestration that handles updates until none is left. It may continue as new, and may call an
// activity in each update.
type tallying struct {
	Left      int
	Continues bool
	Slow      bool
	Added     []int
}

// sum is the state of an entity.
type sum struct{ Total, Operations int }

// addCalling adds orchestrations that call updates and entities, and the entity "sum".
func addCalling(r *perdure.Registry) *perdure.Registry {
	perdure.AddOrchestration(r, "calls", calls)
	perdure.AddOrchestration(r, "tallies", tallies)
	perdure.AddOrchestration(r, "calls-missing", func(ctx *perdure.OrchestrationContext, id string) (string, error) {
		_, err := perdure.CallUpdate[int](ctx, id, "add", 1).Await(ctx)
		return fmt.Sprint(errors.Is(err, perdure.ErrInstanceNotFound)), nil
	})
	perdure.AddOrchestration(r, "calls-ended", func(ctx *perdure.OrchestrationContext, id string) (string, error) {
		nothing := perdure.CallSubOrchestrationByName[int](ctx, "nothing", 1, perdure.WithInstanceID(id))
		if _, err := nothing.Await(ctx); err != nil {
			return "", err
		}
		_, err := perdure.CallUpdate[int](ctx, id, "add", 1, perdure.WithStart("tallies", tallying{Left: 1})).Await(ctx)
		return fmt.Sprint(errors.Is(err, perdure.ErrInstanceEnded)), nil
	})
	perdure.AddOrchestration(r, "accounts", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		var fs []*perdure.Future[int]
		for i := range n {
			fs = append(fs, perdure.CallEntity[int](ctx, "sum", "k", "add", i+1))
		}
		last := 0
		for _, f := range fs {
			v, err := f.Await(ctx)
			if err != nil {
				return 0, err
			}
			last = v
		}
		return last, nil
	})
	perdure.AddEntity(r, "sum",
		perdure.Operation("add", func(ctx *perdure.OrchestrationContext, s *sum, n int) (int, error) {
			s.Operations++
			s.Total += n
			switch {
			case n < 0:
				return 0, errors.New("negative")
			case n == 13:
				panic("unlucky")
			}
			return s.Total, nil
		}),
		perdure.Operation("add-slowly", func(ctx *perdure.OrchestrationContext, s *sum, n int) (int, error) {
			before := s.Total
			if _, err := perdure.CallActivity(ctx, inc, n).Await(ctx); err != nil {
				return 0, err
			}
			s.Operations++
			s.Total = before + n
			return s.Total, nil
		}),
		perdure.Operation("close", func(_ *perdure.OrchestrationContext, s *sum, _ int) (int, error) {
			return s.Total, nil
		}, perdure.DeleteState()))
	return r
}

// calls updates another instance, which the first update starts, and returns the results.
func calls(ctx *perdure.OrchestrationContext, in calling) (string, error) {
	var opts []perdure.CallUpdateOption
	if in.To != ctx.InstanceID() {
		opts = append(opts, perdure.WithStart("tallies", in.tallying))
	} else if err := handleAdd(ctx, &in.tallying); err != nil {
		return "", err
	}
	if in.ID != "" {
		opts = append(opts, perdure.WithUpdateID(in.ID))
	}
	var fs []*perdure.Future[[]int]
	for i := range in.Calls {
		fs = append(fs, perdure.CallUpdate[[]int](ctx, in.To, "add", i, opts...))
	}
	var answers [][]int
	for _, f := range fs {
		a, err := f.Await(ctx)
		if err != nil {
			return "", err
		}
		answers = append(answers, a)
	}
	return fmt.Sprint(answers), nil
}

// handleAdd sets the serialized update handler "add".
func handleAdd(ctx *perdure.OrchestrationContext, in *tallying) error {
	return perdure.SetUpdateHandler(ctx, "add", func(ctx *perdure.OrchestrationContext, n int) ([]int, error) {
		if in.Slow {
			if _, err := perdure.CallActivity(ctx, inc, n).Await(ctx); err != nil {
				return nil, err
			}
		}
		in.Added = append(in.Added, n)
		in.Left--
		// The orchestration continues here, and the next update has not started.
		if err := perdure.Sleep(ctx, time.Millisecond); err != nil {
			return nil, err
		}
		return in.Added, nil
	}, perdure.Serialized())
}

// tallies handles serialized updates until none is left.
func tallies(ctx *perdure.OrchestrationContext, in tallying) ([]int, error) {
	before := in.Left
	if err := handleAdd(ctx, &in); err != nil {
		return nil, err
	}
	for in.Left > 0 {
		if err := perdure.Sleep(ctx, 30*time.Second); err != nil {
			return nil, err
		}
		if in.Continues && in.Left < before && in.Left > 0 {
			if err := perdure.AwaitUpdateHandlers(ctx); err != nil {
				return nil, err
			}
			return perdure.ContinueAsNew[[]int](ctx, in)
		}
	}
	return in.Added, perdure.AwaitUpdateHandlers(ctx)
}
