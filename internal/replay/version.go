package replay

import (
	"fmt"
	"strconv"

	"github.com/perdure/perdure/history"
)

// DefaultVersion is the version of a change for an execution that passed the place before the code contained the
// change.
const DefaultVersion = -1

// versions are the versions of changes that an execution goes by, each of which stays the same until its end: those that history has, and those
// that it was found not to have.
type versions map[string]int

// Version returns the version of a change for this execution. Code that reaches the change for the first time uses
// most, which Version records. On replay, Version returns the recorded version, or DefaultVersion if none is recorded.
// If the version is not between least and most, Version fails the turn with a NondeterminismError and does not return.
func Version(c *Context, change string, least, most int) int {
	c.x.scheduler.enter()
	refuse := func(expected, why string) {
		got := fmt.Sprintf("Version(%q, %d, %d): %s", change, least, most, why)
		c.x.scheduler.fail(c.x.options.nondeterminism(c.x.journal.cursor.lastID, expected, got))
	}
	if least > most {
		refuse("no version", "minVersion is greater than maxVersion")
	}

	version, err := c.x.journal.version(change, most)
	if err != nil {
		c.x.scheduler.fail(err)
	}
	if version < least || version > most {
		refuse(describeVersion(change, version), mend(version, least))
	}
	return version
}

// describeVersion shows what an execution goes by.
func describeVersion(change string, version int) string {
	if version == DefaultVersion {
		return fmt.Sprintf("no version of %q: the execution passed this place before the change", change)
	}
	return fmt.Sprintf("version %d of %q", version, change)
}

// mend says which code is to be deployed.
func mend(version, least int) string {
	switch {
	case version == DefaultVersion:
		return "the code before the change is missing: deploy a build that contains it, with perdure.DefaultVersion as minVersion"
	case version < least:
		return fmt.Sprintf("the code of version %d is missing: deploy a build that contains it, with a minVersion of at most %d", version, version)
	default:
		return fmt.Sprintf("the code of version %d is not in this build: deploy a build that contains it, with a maxVersion of at least %d", version, version)
	}
}

// version finds or decides the version of a change. On replay history has it next, or the execution had passed the change before the code asked
// for it. What history has of a change that the code does not ask for is a divergence, as of any decision: while a deployment is under way the
// build of before, which knows nothing of the change, must not go on with an instance that goes by it.
func (j *journal) version(change string, most int) (int, error) {
	c := &j.cursor
	if v, known := c.versions[change]; known {
		return v, nil
	}
	if !c.replaying {
		ev := j.add()
		ev.Kind = history.VersionMarked
		ev.ChangeID = change
		ev.Version = strconv.Itoa(most)
		return c.goBy(change, most), nil
	}

	ev := c.next()
	if ev == nil || ev.Kind != history.VersionMarked || ev.ChangeID != change {
		return c.goBy(change, DefaultVersion), nil
	}
	v, err := strconv.Atoi(ev.Version)
	if err != nil {
		return 0, fmt.Errorf("replay: instance %q: event #%d has the version %q of %q, which is not a number",
			c.options.InstanceID, ev.ID, ev.Version, ev.ChangeID)
	}
	c.pass()
	return c.goBy(change, v), nil
}

// goBy notes the version of a change, and returns it.
func (c *cursor) goBy(change string, version int) int {
	if c.versions == nil {
		c.versions = versions{}
	}
	c.versions[change] = version
	return version
}
