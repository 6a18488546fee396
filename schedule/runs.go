package schedule

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

// run is a run under way, and its future.
type run struct {
	Run

	future    *perdure.Future[json.RawMessage]
	cancelled bool
}

// lookAtTheRun notes the end of the run that was under way.
func (k *keeper) lookAtTheRun() {
	r := k.run
	if r == nil || !r.future.IsDone() {
		return
	}
	_, err := r.future.Await(k.ctx)
	r.EndedAt = k.ctx.Now()
	if r.Outcome, r.Error = outcomeOf(err); r.Outcome != Completed {
		k.Counts.Failed++
	}
	k.Last, k.run = &r.Run, nil
}

// cancelRun cancels the run that is under way, for the next.
func (k *keeper) cancelRun() {
	if r := k.run; !r.cancelled && !r.future.IsDone() {
		r.cancelled = true
		r.future.Cancel("the next run of schedule " + k.Schedule.ID + " is due")
	}
}

func outcomeOf(err error) (Outcome, string) {
	if err == nil {
		return Completed, ""
	}
	text := history.CutMessage(err.Error(), maxErrorBytes)
	if _, ok := errors.AsType[*perdure.CancelledError](err); ok {
		return Cancelled, text
	}
	return Failed, text
}

// startRuns starts what may be started: the first of the queue, or with Allow all of it, as far as this execution goes.
func (k *keeper) startRuns() {
	for len(k.Queue) > 0 && !k.isFull() {
		switch {
		case k.Schedule.Overlap == Allow:
			k.startBeside(k.takeFirst())
		case k.run == nil:
			k.start(k.takeFirst())
		default:
			return
		}
	}
}

// start starts a run that is waited for.
func (k *keeper) start(t time.Time) {
	r := &run{Run: k.begin(t)}
	opts := []perdure.SubOrchestrationCallOption{perdure.WithInstanceID(r.InstanceID), perdure.WaitForCancellation()}
	r.future = perdure.CallSubOrchestrationByName[json.RawMessage](k.ctx, k.Schedule.Orchestration, k.input(), k.versioned(opts)...)
	k.run = r
}

// startBeside starts a run that is not waited for.
func (k *keeper) startBeside(t time.Time) {
	r := k.begin(t)
	_, err := perdure.StartOrchestration(k.ctx, k.Schedule.Orchestration, k.input(), k.versioned([]perdure.SubOrchestrationCallOption{perdure.WithInstanceID(r.InstanceID)})...)
	if err != nil {
		r.Outcome, r.Error = outcomeOf(err)
		k.Counts.Failed++
	}
	k.Last = &r
}

func (k *keeper) begin(t time.Time) Run {
	k.steps++
	k.Counts.Started++
	return Run{InstanceID: RunID(k.Schedule.ID, t), Due: t, StartedAt: k.ctx.Now()}
}

// input is that of a run: null where the schedule has none.
func (k *keeper) input() json.RawMessage {
	if len(k.Schedule.Input) == 0 {
		return json.RawMessage("null")
	}
	return k.Schedule.Input
}

func (k *keeper) versioned(opts []perdure.SubOrchestrationCallOption) []perdure.SubOrchestrationCallOption {
	if v := k.Schedule.Version; v != "" {
		opts = append(opts, perdure.WithVersion(v))
	}
	return opts
}
