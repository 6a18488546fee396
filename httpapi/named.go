package httpapi

// words are what a problem of an instance, by its code, is called where the path names what has the instance: the field, and the detail.
type words map[string][2]string

var (
	ofSchedules = words{
		codeInstanceNotFound: {fieldScheduleID, "there is no schedule of this id"},
		codeInstanceOver:     {fieldScheduleID, "the schedule is over: a PUT makes it anew"},
	}
	ofEntities = words{
		codeInstanceNotFound:     {fieldKey, "this key has no state: its first call makes it"},
		codeUnknownOrchestration: {fieldEntity, "no deployed build knows this entity; one that was deployed just now is known within moments"},
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
