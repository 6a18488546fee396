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
	past      bool // it is backfilled
}

// lookAtTheRun notes the end of the run that was under way.
func (k *keeper) lookAtTheRun() {
	r := k.run
	if r == nil || !r.future.IsDone() {
		return
	}
	_, err := r.future.Await(k.ctx)
	if r.past && isThere(err) {
		k.Counts.Started--
		k.run = nil
		return
	}
	r.EndedAt = k.ctx.Now()
	if r.Outcome, r.Error = outcomeOf(err); r.Outcome != OutcomeCompleted {
		k.Counts.Failed++
	}
	k.Last, k.run = &r.Run, nil
}

// isThere reports whether a run was not started since its instance id is taken: there was one for that time.
func isThere(err error) bool {
	failed, ok := errors.AsType[*perdure.SubOrchestrationError](err)
	return ok && failed.Type == history.TypeAlreadyExists
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
		return OutcomeCompleted, ""
	}
	text := history.TruncateMessage(err.Error(), maxErrorBytes)
	if _, ok := errors.AsType[*perdure.CancelledError](err); ok {
		return OutcomeCancelled, text
	}
	return OutcomeFailed, text
}

// startRuns starts the first time of the queue, or with OverlapAllow all of them, and then times of backfills, until
// the execution is full.
func (k *keeper) startRuns() {
	for !k.isFull() && (k.run == nil || k.Schedule.Overlap == OverlapAllow) {
		t, past, ok := takeNext(k)
		switch {
		case !ok:
			return
		case k.Schedule.Overlap == OverlapAllow:
			k.startBeside(t)
		default:
			k.start(t, past)
		}
	}
}

// takeNext takes the next time that is to be started out of the queue, or else out of what is backfilled.
func takeNext(k *keeper) (t time.Time, past, ok bool) {
	if k.Paused != nil {
		t, ok = takeByHand(k)
		return t, false, ok
	}
	if len(k.Queue) > 0 {
		return k.takeFirst(), false, true
	}
	if k.run != nil && k.steps >= stepsPerExecution {
		return t, false, false // this execution cannot end yet, and a window with OverlapAllow would fill its history
	}
	windows := len(k.Backfills)
	t, ok = nextOfThePast(k)
	k.steps += windows - len(k.Backfills) // those without a time take room in history, too
	return t, true, ok
}

// start starts a run that is waited for.
func (k *keeper) start(t time.Time, past bool) {
	r := &run{Run: k.begin(t), past: past}
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
