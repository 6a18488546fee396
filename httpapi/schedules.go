package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/perdure/perdure/client"
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

func scheduleRoutes() []route {
	const one = "/v1/schedules/{scheduleId}"
	return []route{
		{http.MethodGet, "/v1/schedules", []string{paramLimit, paramCursor}, listSchedules},
		{http.MethodGet, one, nil, ofSchedule(showSchedule)},
		{http.MethodPut, one, nil, ofSchedule(putSchedule)},
		{http.MethodDelete, one, nil, ofSchedule(deleteSchedule)},
		{http.MethodPost, one + "/run", nil, ofSchedule(runSchedule)},
		{http.MethodPost, one + "/backfill", nil, ofSchedule(backfillSchedule)},
		{http.MethodPost, one + "/pause", nil, ofSchedule(pauseSchedule)},
		{http.MethodPost, one + "/resume", nil, ofSchedule(resumeSchedule)},
	}
}

func listSchedules(h *handler, w http.ResponseWriter, r *http.Request, query url.Values) error {
	limit, err := intParam(query, paramLimit, 1, client.MaxPageSize, defaultPage)
	if err != nil {
		return err
	}
	found, err := page(r.Context(), limit,
		func(ctx context.Context, limit int) (client.Page[client.ScheduleStatus], error) {
			return h.client.Schedules().ListPage(ctx, client.Paging{Limit: limit, Cursor: query.Get(paramCursor)})
		}, func(p client.Page[client.ScheduleStatus]) (any, []client.ScheduleStatus) {
			return SchedulePage{NextCursor: p.NextCursor}, p.Items
		})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, NewSchedulePage(found))
}

// ofSchedule serves a call of the schedule that the path names. Its id is part of an instance id, and written as one.
func ofSchedule(serve func(h *handler, w http.ResponseWriter, r *http.Request, id string) error) func(
	*handler, http.ResponseWriter, *http.Request, url.Values,
) error {
	return func(h *handler, w http.ResponseWriter, r *http.Request, _ url.Values) error {
		id, err := pathID(r, fieldScheduleID, fieldScheduleID)
		if err != nil {
			return err
		}
		return ofSchedules.say(serve(h, w, r, id))
	}
}

func showSchedule(h *handler, w http.ResponseWriter, r *http.Request, id string) error {
	s, err := h.client.Schedules().Get(r.Context(), id)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, s)
}

// putSchedule takes the schedule as its body; the id is that of the path.
func putSchedule(h *handler, w http.ResponseWriter, r *http.Request, id string) error {
	s := schedule.Schedule{ID: id}
	err := readBody(w, r, map[string]any{
		"id": &s.ID, "orchestration": &s.Orchestration, fieldVersion: &s.Version, "input": &s.Input,
		"when": &s.Expression, "timeZone": &s.TimeZone, fieldFrom: &s.From, "until": &s.Until, "overlap": &s.Overlap,
		"catchUp": &s.CatchUp, "revision": &s.Revision,
	})
	switch {
	case err != nil:
		return err
	case s.ID != id:
		return &provider.FieldError{Field: "id", Problem: "must be the id of the path"}
	}
	if err := h.client.Schedules().Put(r.Context(), s); err != nil {
		return err
	}
	return scheduleAccepted(h, w, r, "put schedule", schedule.InstanceID(id))
}

func deleteSchedule(h *handler, w http.ResponseWriter, r *http.Request, id string) error {
	if err := h.client.Schedules().Delete(r.Context(), id); err != nil {
		return err
	}
	return scheduleAccepted(h, w, r, "delete schedule", schedule.InstanceID(id))
}

// runSchedule answers with the instance id of the run.
func runSchedule(h *handler, w http.ResponseWriter, r *http.Request, id string) error {
	run, err := h.client.Schedules().Trigger(r.Context(), id)
	if err != nil {
		return err
	}
	return scheduleAccepted(h, w, r, "run schedule", run)
}

// backfillSchedule answers with the schedule's instance: the runs of the window are many, or none.
func backfillSchedule(h *handler, w http.ResponseWriter, r *http.Request, id string) error {
	var of schedule.BackfillWindow
	if err := readBody(w, r, map[string]any{fieldFrom: &of.From, "to": &of.To}); err != nil {
		return err
	}
	if err := h.client.Schedules().Backfill(r.Context(), id, of.From, of.To); err != nil {
		return err
	}
	return scheduleAccepted(h, w, r, "backfill schedule", schedule.InstanceID(id))
}

// scheduleAccepted answers with the instance that is concerned.
func scheduleAccepted(h *handler, w http.ResponseWriter, r *http.Request, operation, instanceID string) error {
	h.asked(r, operation, ofInstance, instanceID)
	return writeJSON(w, http.StatusAccepted, AcceptedResponse{InstanceID: instanceID})
}

func pauseSchedule(h *handler, w http.ResponseWriter, r *http.Request, id string) error {
	return tellInstance(h, w, r, "pause", schedule.InstanceID(id), func(ctx context.Context, _, message string) error {
		return unlessPending(ctx, h.client.Schedules().Pause(ctx, id, message))
	})
}

func resumeSchedule(h *handler, w http.ResponseWriter, r *http.Request, id string) error {
	return tellInstance(h, w, r, "resume", schedule.InstanceID(id), func(ctx context.Context, _, message string) error {
		return unlessPending(ctx, h.client.Schedules().Resume(ctx, id, message))
	})
}

// unlessPending is the error of what was asked of a schedule; nil where it has been sent, and waits with the schedule,
// as when that is blocked.
func unlessPending(ctx context.Context, err error) error {
	if e, told := errors.AsType[*client.UpdateError](err); told && e.Code == client.UpdatePending && ctx.Err() == nil {
		return nil
	}
	return err
}
