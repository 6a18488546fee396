package replay

import (
	"fmt"

	"github.com/perdure/perdure/internal/replay/journal"
)

// DefaultVersion is the version of a change for an execution that passed the position of the change before the code
// contained it.
const DefaultVersion = journal.DefaultVersion

// Version returns the version of a change for this execution. Code that reaches the change for the first time uses
// most, which Version records. On replay, Version returns the recorded version, or DefaultVersion if none is recorded.
// If the version is not between least and most, Version fails the turn with a NondeterminismError and does not return.
func (u Unscoped) Version(change string, least, most int) int {
	u.x.scheduler.Enter()
	refuse := func(expected, why string) {
		got := fmt.Sprintf("Version(%q, %d, %d): %s", change, least, most, why)
		u.x.scheduler.Fail(u.x.journal.Nondeterminism(u.x.journal.Cursor.LastID(), expected, got))
	}
	if least > most {
		refuse("no version", "minVersion is greater than maxVersion")
	}

	version, err := u.x.journal.Version(change, most)
	if err != nil {
		u.x.scheduler.Fail(err)
	}
	if version < least || version > most {
		refuse(describeVersion(change, version), versionFix(version, least))
	}
	return version
}

// describeVersion describes the version of an execution.
func describeVersion(change string, version int) string {
	if version == DefaultVersion {
		return fmt.Sprintf("no version of %q: the execution passed this point before the change", change)
	}
	return fmt.Sprintf("version %d of %q", version, change)
}

// versionFix returns the part of an error message that names the code to deploy.
func versionFix(version, least int) string {
	switch {
	case version == DefaultVersion:
		return "the code before the change is missing: deploy a build that contains it, " +
			"with perdure.DefaultVersion as minVersion"
	case version < least:
		return fmt.Sprintf("the code of version %d is missing: deploy a build that contains it, "+
			"with a minVersion of at most %d", version, version)
	default:
		return fmt.Sprintf("the code of version %d is not in this build: deploy a build that contains it, "+
			"with a maxVersion of at least %d", version, version)
	}
}
