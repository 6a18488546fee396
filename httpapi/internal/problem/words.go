package problem

import "github.com/perdure/perdure/internal/apiwire"

// Words replaces the field and the detail of a problem of an instance, by the code of the problem. Routes that do not
// name the instance use it.
type Words map[string][2]string

// Words of the routes of schedules and entities.
var (
	OfSchedule = Words{
		apiwire.CodeInstanceNotFound: {FieldScheduleID, "schedule not found"},
		apiwire.CodeInstanceOver:     {FieldScheduleID, "schedule has ended; create it again with PUT"},
	}
	OfEntity = Words{
		apiwire.CodeInstanceNotFound: {FieldKey, "this key has no state; its first call creates it"},
		apiwire.CodeUnknownOrchestration: {
			FieldEntity, "no deployed build has this entity; a new deployment takes a few seconds to become visible",
		},
	}
)

// Of returns the error with the replaced field and detail. It returns other errors unchanged.
func (w Words) Of(err error) error {
	if err == nil {
		return nil
	}
	p := Of(err)
	own, found := w[p.Code]
	if !found {
		return err
	}
	return &Problem{Status: p.Status, Code: p.Code, Field: own[0], Detail: own[1]}
}
