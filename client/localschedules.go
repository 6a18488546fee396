package client

import (
	"context"
	"errors"

	localhub "github.com/perdure/perdure/client/internal/local"
	"github.com/perdure/perdure/schedule"
)

// localSchedules manages schedules with the calls of a Client.
type localSchedules struct{ localhub.Schedules }

// Schedule implements operations.
func (s localSchedules) Schedule(ctx context.Context, id string) (ScheduleStatus, error) {
	status, err := s.Get(ctx, id)
	return publicSchedule(&status), err
}

// Schedules implements operations.
func (s localSchedules) ListSchedules(
	ctx context.Context, limit int, cursor string,
) (items []ScheduleStatus, next string, err error) {
	found, next, err := s.List(ctx, limit, cursor)
	for i := range found {
		items = append(items, publicSchedule(&found[i]))
	}
	return items, next, err
}

func publicSchedule(s *localhub.ScheduleStatus) ScheduleStatus {
	return ScheduleStatus{Status: s.Status, RuntimeStatus: s.RuntimeStatus, InstanceID: s.InstanceID}
}

// instanceCalls are the calls of a Client that schedules consist of.
type instanceCalls struct{ *Client }

func (c instanceCalls) Command(ctx context.Context, instanceID string, o schedule.Command, eventID string) error {
	var opts []RaiseOption
	if eventID != "" {
		opts = append(opts, WithEventID(eventID))
	}
	return c.RaiseEvent(ctx, instanceID, schedule.CommandEvent, o, opts...)
}

func (c instanceCalls) Start(ctx context.Context, instanceID string, state *schedule.State) error {
	_, err := c.Client.Start(ctx, schedule.OrchestrationName, state, WithInstanceID(instanceID))
	return err
}

func (c instanceCalls) Purge(ctx context.Context, instanceID string) error {
	return c.Client.Purge(ctx, instanceID)
}

func (c instanceCalls) Update(
	ctx context.Context, instanceID, update, message string,
) (result string, noHandler bool, err error) {
	doc, err := c.Client.Update(ctx, instanceID, update, message)
	e, failed := errors.AsType[*UpdateError](err)
	return string(doc), failed && e.Code == UpdateHandlerNotFound, err
}

func (c instanceCalls) SendUpdate(ctx context.Context, instanceID, update, message string) error {
	u, err := c.newUpdate(instanceID, update, message, updateOptions{})
	if err != nil {
		return err
	}
	return u.Send(ctx)
}
