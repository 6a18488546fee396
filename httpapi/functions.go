package httpapi

import (
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/client"
)

// Receivers of the functions that serve operations, by subject. Each one has the dependencies of its functions.
type (
	instances struct {
		client *client.Client
		admin  *admin.Client // for cost estimates
	}
	entities    struct{ client *client.Client }
	schedules   struct{ client *client.Client }
	tokens      struct{ client *client.Client }
	leases      struct{ client *client.Client }
	jobs        struct{ admin *admin.Client }
	queues      struct{ admin *admin.Client }
	deadLetters struct {
		admin *admin.Client
		now   func() time.Time
	}
)

// functions returns the function that serves each operation.
func (h *handler) functions(c *client.Client, a *admin.Client) functions {
	i, e, s := instances{c, a}, entities{c}, schedules{c}
	j, d, t := jobs{a}, deadLetters{a, h.now}, tokens{c}
	return functions{
		"startOrchestration": i.start,
		"listInstances":      i.list,
		"getInstance":        i.status,
		"putInstance":        i.put,
		"purgeInstance":      i.purge,
		"annotateInstance":   i.annotate,
		"getResult":          i.result,
		"listExecutions":     i.executions,
		"getHistory":         i.history,
		"streamHistory":      i.stream,
		"listCancellations":  i.cancellations,
		"raiseEvent":         i.raise,
		"queryInstance":      i.query,
		"updateInstance":     i.update,
		"cancelInstance":     i.cancel,
		"terminateInstance":  i.terminate,
		"restartInstance":    i.restart,
		"pauseInstance":      i.pause,
		"resumeInstance":     i.resume,
		"cancelActivity":     i.cancelActivity,

		"entityState": e.state,
		"callEntity":  e.call,

		"startJob":  j.start,
		"listJobs":  j.list,
		"getJob":    j.get,
		"cancelJob": j.cancel,

		"listSchedules":    s.list,
		"getSchedule":      ofSchedule(s.get),
		"putSchedule":      ofSchedule(s.put),
		"deleteSchedule":   ofSchedule(s.delete),
		"runSchedule":      ofSchedule(s.run),
		"backfillSchedule": ofSchedule(s.backfill),
		"pauseSchedule":    ofSchedule(s.pause),
		"resumeSchedule":   ofSchedule(s.resume),

		"countDeadLetters":   d.queues,
		"listDeadLetters":    d.list,
		"getDeadLetter":      d.get,
		"redriveDeadLetters": d.redrive,
		"dropDeadLetters":    d.drop,

		"completeActivity": t.complete,
		"failActivity":     t.fail,
		"beatActivity":     t.heartbeat,
		api.RenewWorkItems: leases{c}.renew,

		"listQueues": queues{a}.list,
		"getOpenAPI": openAPI,
		"getHealth":  health,
	}
}
