package describe

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/httpapi"
)

// nextStep is an action of the user that lets an instance continue.
type nextStep struct {
	text string
	// command has the arguments of a perdure command, or none.
	command []string
}

// The next steps of a blocked instance, by failure type. The web UI has the same texts.
var blockedSteps = map[string]string{
	history.TypeNondeterminism: "Deploy the old code again, and register the new code under another version. " +
		"If only an input differs, the same build made both decisions, and the code depends on map order, time or " +
		"randomness: " +
		"record such values with SideEffect. The instance continues once a build matches its history.",
	history.TypeUnregistered: "Deploy a build that registers this version of the orchestration. " +
		"The instance then continues.",
	history.TypeBlockingCall: "The code waits for something other than a future of the engine. " +
		"Fix the code location in the message, and deploy.",
	history.TypeForeignGoroutine: "The code calls the engine from its own goroutine. " +
		"Use perdure.Go at the code location in the message, and deploy.",
	history.TypePayloadTooLarge: "The code continues as new with too many unconsumed inputs for one commit. " +
		"Deploy code that consumes more of them first. Nothing is lost.",
	history.TypePoison: "A turn repeatedly ended the process: out of memory, os.Exit, " +
		"or the 30 s timeout of the invocation. Find the cause in the log of the orchestrator, fix it and deploy. " +
		"If you change only the memory size, raise any event to start the next turn.",
	history.TypeCorrupt: "The history cannot be read. If a newer release wrote it, deploy that release. " +
		"Otherwise restore the item in the message. Terminate ends the instance without reading its history.",
}

// startTimeout is the time after which a missing first turn counts as a problem.
const startTimeout = 2 * time.Minute

// otherBlockedStep is the next step of an instance that is blocked for another reason.
const otherBlockedStep = "Fix the cause in the message, and deploy. The instance then continues."

// internalPrefix is the prefix of the names of events that only this module sends.
const internalPrefix = "perdure."

// doctorCommand is the command that checks the deployment.
var doctorCommand = []string{"doctor"}

// statusCommand returns the command that shows the status of an instance.
func statusCommand(id string) []string { return []string{"status", id} }

// reconcileCommand returns the command that sends the pending work of an instance again and starts a turn.
func reconcileCommand(id string) []string { return []string{"reconcile", "--yes", "--instance", id} }

// NextSteps returns the next steps of an instance with their commands, or "" if there are none.
func NextSteps(env *cli.Env, s *client.Status, p *httpapi.Pending, children Children) string {
	var b strings.Builder
	for _, step := range nextSteps(env, s, p, children) {
		b.WriteString("\n" + strings.Join(term.Wrap("Next: ", term.Clean(step.text), term.ScreenWidth), "\n") + "\n")
		if len(step.command) > 0 {
			b.WriteString(term.NoteIndent + env.CommandLine(step.command) + "\n")
		}
	}
	return b.String()
}

// nextSteps returns the possible actions of a user, the most important one first.
func nextSteps(env *cli.Env, s *client.Status, p *httpapi.Pending, children Children) (steps []nextStep) {
	switch s.Status {
	case client.StatusPaused:
		steps = append(steps, nextStep{
			"The orchestration does not run until you resume it.", []string{"resume", s.InstanceID},
		})
	case client.StatusBlocked:
		steps = append(steps, blockedStep(s))
	case client.StatusPending:
		if now := env.Now(); now.Sub(s.CreatedAt) > startTimeout && !s.StartAt.After(now) {
			text := "No turn has run. Check that the orchestrator is deployed and receives messages:"
			return []nextStep{{text, doctorCommand}}
		}
	case client.StatusRunning, client.StatusCancelling:
	default:
		return nil
	}

	if step := stuckChildStep(p, children); step != nil {
		return append(steps, *step)
	}
	if len(steps) > 0 {
		return steps
	}
	for _, find := range taskSteps {
		for i := range pendingItems(p) {
			if step := find(s, p, &p.Items[i], children); step != nil {
				return []nextStep{*step}
			}
		}
	}
	return nil
}

// blockedStep returns the next step of a blocked instance. The messages of an instance with a corrupt history are dead
// letters, so that step redrives them instead of waking the instance.
func blockedStep(s *client.Status) nextStep {
	reason := ""
	if s.Failure != nil {
		reason = s.Failure.Type
	}
	text := cmp.Or(blockedSteps[reason], otherBlockedStep)
	if reason == history.TypeCorrupt {
		return nextStep{text + " Then send its messages again:", []string{
			"dead-letters", "redrive", "--reason", "corrupt:", "--instance", s.InstanceID,
		}}
	}
	return nextStep{text + " To continue immediately after the deployment:", reconcileCommand(s.InstanceID)}
}

// stuckChildStep returns the next step if a child is blocked or paused, or nil otherwise.
func stuckChildStep(p *httpapi.Pending, children Children) *nextStep {
	for _, stuck := range []string{string(client.StatusBlocked), string(client.StatusPaused)} {
		for _, x := range pendingItems(p) {
			if x.Kind == client.PendingSubOrchestration && children[x.InstanceID] == stuck {
				return &nextStep{
					fmt.Sprintf("The child %s is %s. Its status shows why:", x.InstanceID, stuck),
					statusCommand(x.InstanceID),
				}
			}
		}
	}
	return nil
}

// taskSteps are functions that return the next step for a pending task, or nil. The most important step is first.
var taskSteps = []func(s *client.Status, p *httpapi.Pending, x *client.PendingItem, children Children) *nextStep{
	missingChildStep, unregisteredStep, noWorkerStep, retryStep, externalStep, eventStep, childStep, sentStep,
}

// missingChildStep returns the next step for a child that does not exist two minutes after it was scheduled, or nil.
func missingChildStep(
	s *client.Status, p *httpapi.Pending, x *client.PendingItem, children Children,
) *nextStep {
	missing := x.Kind == client.PendingSubOrchestration && children[x.InstanceID] == statusNotFound
	if !missing || p.ReadAt.Sub(x.ScheduledAt) < startTimeout {
		return nil
	}
	return &nextStep{
		fmt.Sprintf("The child %s does not exist. Send its start again:", x.InstanceID),
		reconcileCommand(s.InstanceID),
	}
}

func unregisteredStep(s *client.Status, _ *httpapi.Pending, x *client.PendingItem, _ Children) *nextStep {
	if x.UnregisteredAt.IsZero() {
		return nil
	}
	return &nextStep{
		fmt.Sprintf("Deploy a worker for queue %s that has activity %s, or cancel the activity:", x.Queue, x.Name),
		[]string{"cancel", s.InstanceID, "--activity", term.Number(x.ID)},
	}
}

func noWorkerStep(_ *client.Status, _ *httpapi.Pending, x *client.PendingItem, _ Children) *nextStep {
	if !x.NoWorker {
		return nil
	}
	return &nextStep{
		fmt.Sprintf("No worker of queue %s reports. Check that the queue has a function, that it starts, "+
			"and that it may read the queue:", x.Queue),
		doctorCommand,
	}
}

func retryStep(_ *client.Status, p *httpapi.Pending, x *client.PendingItem, _ Children) *nextStep {
	switch {
	case x.LastError == nil || !x.CancelledAt.IsZero():
		return nil
	case x.NextAttemptAt.After(p.ReadAt):
		return &nextStep{text: fmt.Sprintf("Fix the cause of the last error of %s. "+
			"The next attempt is due at %s, in %s; no command starts it earlier.",
			x.Name, term.Time(x.NextAttemptAt), term.Duration(x.NextAttemptAt.Sub(p.ReadAt)))}
	default:
		return &nextStep{text: fmt.Sprintf("Fix the cause of the last error of %s. "+
			"Attempt %d is in its queue or running.", x.Name, x.Attempt)}
	}
}

func externalStep(_ *client.Status, _ *httpapi.Pending, x *client.PendingItem, _ Children) *nextStep {
	if x.ResultPendingSince.IsZero() {
		return nil
	}
	return &nextStep{text: fmt.Sprintf("The holder of the completion token must complete activity %s "+
		"(perdure complete TOKEN).", x.Name)}
}

func eventStep(s *client.Status, _ *httpapi.Pending, x *client.PendingItem, _ Children) *nextStep {
	if x.Kind != client.PendingExternalEvent || strings.HasPrefix(x.Name, internalPrefix) {
		return nil
	}
	return &nextStep{
		fmt.Sprintf("The sender of the external event %s must send it. "+
			"If it cannot, send the event yourself, with the data that the code expects (--data):", x.Name),
		[]string{"raise", s.InstanceID, x.Name},
	}
}

func childStep(_ *client.Status, _ *httpapi.Pending, x *client.PendingItem, children Children) *nextStep {
	status := children[x.InstanceID]
	if x.Kind != client.PendingSubOrchestration || status == "" || status == statusNotFound ||
		client.RuntimeStatus(status).Terminal() {
		return nil
	}
	return &nextStep{
		fmt.Sprintf("The instance waits for its child %s, which is %s. Its status shows why:", x.InstanceID, status),
		statusCommand(x.InstanceID),
	}
}

func sentStep(_ *client.Status, _ *httpapi.Pending, x *client.PendingItem, _ Children) *nextStep {
	if x.Kind != client.PendingSentEvent && x.Kind != client.PendingSentUpdate {
		return nil
	}
	return &nextStep{
		fmt.Sprintf("The instance waits for a response of instance %s:", x.InstanceID),
		statusCommand(x.InstanceID),
	}
}
