package httpapi

// words are what a problem of an instance, by its code, is called where the path names what has the instance: the
// field, and the detail.
type words map[string][2]string

var (
	ofSchedules = words{
		codeInstanceNotFound: {fieldScheduleID, "schedule not found"},
		codeInstanceOver:     {fieldScheduleID, "schedule has ended; create it again with PUT"},
	}
	ofEntities = words{
		codeInstanceNotFound: {fieldKey, "this key has no state; its first call creates it"},
		codeUnknownOrchestration: {
			fieldEntity, "no deployed build has this entity; a new deployment takes a few seconds to become visible",
		},
	}
)

// say returns an error with these words, and others as they are.
func (w words) say(err error) error {
	if err == nil {
		return nil
	}
	p := problemOf(err)
	own, there := w[p.Code]
	if !there {
		return err
	}
	return &problem{Status: p.Status, Code: p.Code, Field: own[0], Detail: own[1]}
}
