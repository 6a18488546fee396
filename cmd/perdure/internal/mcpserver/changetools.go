package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/operations"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/provider"
)

type startArgs struct {
	confirmed

	Name    string            `json:"name" jsonschema:"name of the orchestration"`
	ID      string            `json:"id" jsonschema:"ID of the new instance"`
	Version string            `json:"version,omitempty" jsonschema:"version of the orchestration, default the highest"`
	Input   any               `json:"input,omitempty" jsonschema:"input, any JSON"`
	Tags    map[string]string `json:"tags,omitempty" jsonschema:"tags of the new instance"`
}

type raiseArgs struct {
	confirmed

	ID      string `json:"id" jsonschema:"instance ID"`
	Event   string `json:"event" jsonschema:"name of the event"`
	Data    any    `json:"data,omitempty" jsonschema:"data of the event, any JSON"`
	EventID string `json:"eventId,omitempty" jsonschema:"ID of the event: an event with the same ID is delivered once"`
}

type messageArgs struct {
	confirmed

	ID      string `json:"id" jsonschema:"instance ID"`
	Message string `json:"message,omitempty" jsonschema:"reason, which the history records"`
}

type activityArgs struct {
	confirmed

	ID       string `json:"id" jsonschema:"instance ID"`
	Activity int64  `json:"activity" jsonschema:"event ID of the activity, as listed by pending"`
	Message  string `json:"message,omitempty" jsonschema:"reason, which the history records"`
}

type noteArgs struct {
	confirmed

	ID   string `json:"id" jsonschema:"instance ID"`
	Note string `json:"note" jsonschema:"text of the note"`
}

type idArgs struct {
	confirmed

	ID string `json:"id" jsonschema:"instance ID"`
}

type letterArgs struct {
	confirmed

	Queue string   `json:"queue" jsonschema:"queue of the dead letters"`
	IDs   []string `json:"ids" jsonschema:"IDs of 1 to 10 dead letters"`
}

// addChanges adds the tools of the allowed operations.
func (s *server) addChanges() {
	s.addStarts()
	s.addMessages()
	s.addLifecycle()
	s.addLetters()
}

// payload returns a payload as it was sent.
func payload(raw map[string]json.RawMessage, name string) json.RawMessage {
	if doc := raw[name]; len(doc) > 0 {
		return doc
	}
	return json.RawMessage(cli.NoInput)
}

// accepted is the result of a message that was sent to an instance.
func accepted(id string, err error) (did string, data any, _ error) {
	return "The hub has accepted the request.", httpapi.AcceptedResponse{InstanceID: id}, err
}

func (s *server) addStarts() {
	addChange(s, change[startArgs]{
		operation: opStart, title: "Start an instance", effect: "Start an instance of an orchestration.",
		inspect: func(ctx context.Context, c call[startArgs]) (*inspection, error) {
			return s.inspectFreeID(ctx, c.in.ID)
		},
		do: func(ctx context.Context, c call[startArgs], _ *inspection) (string, any, error) {
			id, err := s.hub.Client.Start(ctx, c.in.Name, payload(c.raw, "input"), client.WithInstanceID(c.in.ID),
				client.WithVersion(c.in.Version), client.WithTags(c.in.Tags))
			return "The instance was started.", httpapi.NewStartResponse(id), err
		},
	})
	addChange(s, change[idArgs]{
		operation: opRestart, title: "Restart an instance",
		effect: "Start the orchestration of an ended instance again, as a new instance with the same input.",
		inspect: func(ctx context.Context, c call[idArgs]) (*inspection, error) {
			return s.inspectInstance(ctx, c.in.ID, true)
		},
		do: func(ctx context.Context, c call[idArgs], _ *inspection) (string, any, error) {
			id, err := s.hub.Client.Restart(ctx, c.in.ID)
			return "A new instance was started.", httpapi.NewStartResponse(id), err
		},
	})
}

func (s *server) addMessages() {
	addChange(s, change[raiseArgs]{
		operation: opRaise, title: "Raise an event", effect: "Send an external event to an instance.",
		inspect: func(ctx context.Context, c call[raiseArgs]) (*inspection, error) {
			return s.inspectInstance(ctx, c.in.ID, false)
		},
		do: func(ctx context.Context, c call[raiseArgs], _ *inspection) (string, any, error) {
			// a repeated request of the client has the same ID
			id := client.WithEventID(cmp.Or(c.in.EventID, c.in.Confirmation))
			return accepted(c.in.ID, s.hub.Client.RaiseEvent(ctx, c.in.ID, c.in.Event, payload(c.raw, "data"), id))
		},
	})
	addChange(s, change[noteArgs]{
		operation: opAnnotate, title: "Add a note", effect: "Add a note to an instance, which its status shows.",
		inspect: func(ctx context.Context, c call[noteArgs]) (*inspection, error) {
			return s.inspectInstance(ctx, c.in.ID, false)
		},
		do: func(ctx context.Context, c call[noteArgs], _ *inspection) (string, any, error) {
			err := s.hub.Client.Annotate(ctx, c.in.ID, c.in.Note)
			return "The note was added.", httpapi.AcceptedResponse{InstanceID: c.in.ID}, err
		},
	})
	addChange(s, change[activityArgs]{
		operation: opCancelActivity, title: "Cancel an activity",
		effect: "Cancel one activity of an instance. The instance continues.",
		inspect: func(ctx context.Context, c call[activityArgs]) (*inspection, error) {
			return s.inspectInstance(ctx, c.in.ID, true)
		},
		do: func(ctx context.Context, c call[activityArgs], _ *inspection) (string, any, error) {
			return accepted(c.in.ID, s.hub.Client.CancelActivity(ctx, c.in.ID, c.in.Activity, c.in.Message))
		},
	})
}

// addLifecycle adds the tools that end, pause and delete instances.
func (s *server) addLifecycle() {
	inspect := func(ctx context.Context, c call[messageArgs]) (*inspection, error) {
		return s.inspectInstance(ctx, c.in.ID, false)
	}
	for _, x := range []struct {
		operation, title, effect string
		send                     func(ctx context.Context, id, message string) error
	}{
		{
			opCancel, "Cancel an instance", "Cancel an instance. Its code observes the cancellation and can clean up.",
			s.hub.Client.Cancel,
		},
		{
			opTerminate, "Terminate an instance",
			"End an instance immediately. Its code does not run, and nothing is compensated.", s.hub.Client.Terminate,
		},
		{opPause, "Pause an instance", "Pause an instance until it is resumed.", s.hub.Client.Pause},
	} {
		addChange(s, change[messageArgs]{
			operation: x.operation, title: x.title, effect: x.effect, inspect: inspect,
			do: func(ctx context.Context, c call[messageArgs], _ *inspection) (string, any, error) {
				return accepted(c.in.ID, x.send(ctx, c.in.ID, c.in.Message))
			},
		})
	}
	addChange(s, change[messageArgs]{
		operation: opResume, title: "Resume an instance", effect: "Resume a paused instance.", inspect: inspect,
		do: func(ctx context.Context, c call[messageArgs], _ *inspection) (string, any, error) {
			err := s.hub.Client.Resume(ctx, c.in.ID, c.in.Message)
			if errors.Is(err, client.ErrNotPaused) { // as in perdure resume
				data := httpapi.AcceptedResponse{InstanceID: c.in.ID, NotPaused: true}
				return "The instance is not recorded as paused. A pause in flight is resumed.", data, nil
			}
			return accepted(c.in.ID, err)
		},
	})
	addChange(s, change[idArgs]{
		operation: opPurge, title: "Purge an instance",
		effect: "Delete an ended instance and its history. They cannot be restored.",
		inspect: func(ctx context.Context, c call[idArgs]) (*inspection, error) {
			return s.inspectInstance(ctx, c.in.ID, false)
		},
		do: func(ctx context.Context, c call[idArgs], seen *inspection) (string, any, error) {
			err := s.hub.Client.Purge(ctx, c.in.ID, client.IfCreatedAt(seen.status.CreatedAt))
			return "The instance was deleted.", httpapi.AcceptedResponse{InstanceID: c.in.ID}, err
		},
	})
}

// maxLetters is the number of dead letters of one call.
const maxLetters = 10

func (s *server) addLetters() {
	for _, x := range []struct {
		operation, title, effect string
		act                      func(ctx context.Context, q admin.DeadLetterQuery) (admin.DeadLetterResult, error)
	}{
		{
			opRedrive, "Redrive dead letters", "Send dead letters to their queue again. " +
				"Those whose message is in the history or was sent again are kept.",
			func(ctx context.Context, q admin.DeadLetterQuery) (admin.DeadLetterResult, error) {
				return s.hub.Admin.RedriveDeadLetters(ctx, q)
			},
		},
		{
			opDrop, "Delete dead letters", "Delete dead letters. They cannot be restored, and one with the reason " +
				"corrupt:, or without a reason, is the only copy of its message.", s.hub.Admin.DropDeadLetters,
		},
	} {
		addChange(s, change[letterArgs]{
			operation: x.operation, title: x.title, effect: x.effect, inspect: s.inspectDeadLetters,
			do: func(ctx context.Context, c call[letterArgs], _ *inspection) (string, any, error) {
				done, err := x.act(ctx, letterQuery(&c.in, s.timeout))
				did := fmt.Sprintf("%d dead letters done, %d kept, %d failed", done.Done, done.Skipped, done.Failed)
				if err != nil {
					return "", nil, fmt.Errorf("%s: %w", did, err)
				}
				return did + ".", httpapi.DeadLetterResult{
					Done: done.Done, Skipped: done.Skipped, TooRecent: done.TooRecent, Failed: done.Failed,
					SentNotDeleted: append([]string{}, done.SentNotDeleted...), Complete: done.Complete,
					Errors: []string{},
				}, nil
			},
		})
	}
}

func letterQuery(in *letterArgs, timeout time.Duration) admin.DeadLetterQuery {
	return admin.DeadLetterQuery{Queue: in.Queue, IDs: in.IDs, TimeLimit: timeout / 3}
}

// inspectDeadLetters reads the dead letters that a change concerns. All of them must exist.
func (s *server) inspectDeadLetters(ctx context.Context, c call[letterArgs]) (*inspection, error) {
	if n := len(c.in.IDs); n < 1 || n > maxLetters {
		return nil, &provider.FieldError{
			Field: "ids", Problem: fmt.Sprintf("must have 1 to %d entries, has %d", maxLetters, n),
		}
	}
	found, err := s.hub.Admin.DeadLetters(ctx, letterQuery(&c.in, s.timeout), len(c.in.IDs))
	if err != nil {
		return nil, err
	}
	var seen []string
	for i := range found.Items {
		seen = append(seen, found.Items[i].Record.ID+" "+found.Items[i].Reason)
	}
	slices.Sort(seen)
	if missing := len(c.in.IDs) - len(seen); missing > 0 {
		return nil, cli.Exitf(cli.CodeError, "%d of %d dead letters not found; list them with dead_letters, "+
			"and retry in a minute because the sweeper may hide them", missing, len(c.in.IDs))
	}
	return &inspection{
		text:  operations.DeadLetterTable(found.Items),
		data:  map[string]any{nameItems: operations.DeadLetterItems(found.Items)},
		state: strings.Join(seen, "\n"),
	}, nil
}
