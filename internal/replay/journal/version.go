package journal

import (
	"fmt"
	"strconv"

	"github.com/perdure/perdure/history"
)

// DefaultVersion is the version of a change for an execution that passed the position of the change before the code
// contained it.
const DefaultVersion = -1

// versions are the versions of changes in an execution. They do not change until its end.
type versions map[string]int

// Version returns the version of a change in this execution. During a turn it records latest. On replay, it returns the
// recorded version, or DefaultVersion if the next event does not record one.
//
// If the history records a change that the code does not request, the next decision diverges. During a deployment, the
// old build must not continue an instance that uses the new version.
func (j *Journal) Version(change string, latest int) (int, error) {
	c := &j.Cursor
	if v, known := c.versions[change]; known {
		return v, nil
	}
	if !c.replaying {
		ev := j.Add()
		ev.Kind = history.VersionMarked
		ev.ChangeID = change
		ev.Version = strconv.Itoa(latest)
		return c.setVersion(change, latest), nil
	}

	ev := c.Next()
	if ev == nil || ev.Kind != history.VersionMarked || ev.ChangeID != change {
		return c.setVersion(change, DefaultVersion), nil
	}
	v, err := strconv.Atoi(ev.Version)
	if err != nil {
		return 0, fmt.Errorf("replay: instance %q: event #%d has the version %q of %q, which is not a number",
			c.options.InstanceID, ev.ID, ev.Version, ev.ChangeID)
	}
	c.Pass()
	return c.setVersion(change, v), nil
}

// setVersion stores the version of a change and returns it.
func (c *Cursor) setVersion(change string, version int) int {
	if c.versions == nil {
		c.versions = versions{}
	}
	c.versions[change] = version
	return version
}
