package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi/internal/problem"
	"github.com/perdure/perdure/httpapi/internal/request"
	"github.com/perdure/perdure/httpapi/internal/response"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/schedule"
)

// SchedulePage is a page of schedules. It may have fewer items than requested if the response would be too large.
type SchedulePage struct {
	Items      []client.ScheduleStatus `json:"items"`
	NextCursor string                  `json:"nextCursor,omitempty"`
}

// NewSchedulePage returns the response for a page.
func NewSchedulePage(p client.Page[client.ScheduleStatus]) SchedulePage {
	return SchedulePage{Items: append([]client.ScheduleStatus{}, p.Items...), NextCursor: p.NextCursor}
}

func (s schedules) list(c *call) error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	found, err := response.Page(c.ctx(), limit,
		func(ctx context.Context, limit int) (client.Page[client.ScheduleStatus], error) {
			return s.client.Schedules().ListPage(ctx, client.Paging{Limit: limit, Cursor: c.query.Get(paramCursor)})
		}, func(p client.Page[client.ScheduleStatus]) (any, []client.ScheduleStatus) {
			return SchedulePage{NextCursor: p.NextCursor}, p.Items
		})
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, NewSchedulePage(found))
}

// ofSchedule returns the function for an operation on the schedule that the path names.
func ofSchedule(serve func(c *call, id string) error) func(*call) error {
	return func(c *call) error {
		id, err := request.ID(c.r, problem.FieldScheduleID, problem.FieldScheduleID)
		if err != nil {
			return err
		}
		return problem.OfSchedule.Of(serve(c, id))
	}
}

func (s schedules) get(c *call, id string) error {
	status, err := s.client.Schedules().Get(c.ctx(), id)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, status)
}

func (s schedules) put(c *call, id string) error {
	def := schedule.Schedule{ID: id}
	err := c.body(map[string]any{
		"id": &def.ID, "orchestration": &def.Orchestration, fieldVersion: &def.Version, "input": &def.Input,
		"when": &def.Expression, "timeZone": &def.TimeZone, fieldFrom: &def.From, "until": &def.Until,
		"overlap": &def.Overlap, "catchUp": &def.CatchUp, "revision": &def.Revision,
	})
	switch {
	case err != nil:
		return err
	case def.ID != id:
		return &provider.FieldError{Field: "id", Problem: "must be the id of the path"}
	}
	if err := s.client.Schedules().Put(c.ctx(), def); err != nil {
		return err
	}
	return c.accepted(schedule.InstanceID(id))
}

func (s schedules) delete(c *call, id string) error {
	if err := s.client.Schedules().Delete(c.ctx(), id); err != nil {
		return err
	}
	return c.accepted(schedule.InstanceID(id))
}

// run responds with the instance ID of the run.
func (s schedules) run(c *call, id string) error {
	var opts []client.TriggerOption
	key, given, err := c.idempotencyKey()
	if err != nil {
		return err
	}
	if given {
		opts = append(opts, client.WithTriggerKey(key))
	}
	run, err := s.client.Schedules().Trigger(c.ctx(), id, opts...)
	if f, wrong := errors.AsType[*provider.FieldError](err); wrong && f.Field == problem.FieldKey {
		return &provider.FieldError{Field: problem.FieldIdempotencyKey, Problem: f.Problem}
	}
	if err != nil {
		return err
	}
	return c.accepted(run)
}

func (s schedules) backfill(c *call, id string) error {
	var window schedule.BackfillWindow
	if err := c.body(map[string]any{fieldFrom: &window.From, "to": &window.To}); err != nil {
		return err
	}
	if err := s.client.Schedules().Backfill(c.ctx(), id, window.From, window.To); err != nil {
		return err
	}
	return c.accepted(schedule.InstanceID(id))
}

func (s schedules) pause(c *call, id string) error {
	return c.send(schedule.InstanceID(id), func(ctx context.Context, _, message string) error {
		return unlessPending(ctx, s.client.Schedules().Pause(ctx, id, message))
	})
}

func (s schedules) resume(c *call, id string) error {
	return c.send(schedule.InstanceID(id), func(ctx context.Context, _, message string) error {
		return unlessPending(ctx, s.client.Schedules().Resume(ctx, id, message))
	})
}

// unlessPending returns nil for an update that is sent but not handled yet, for example by a blocked schedule.
func unlessPending(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*client.UpdateError](err); ok && e.Code == client.UpdatePending && ctx.Err() == nil {
		return nil
	}
	return err
}
