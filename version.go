package perdure

import (
	"github.com/perdure/perdure/internal/names"
	"github.com/perdure/perdure/internal/replay"
)

// DefaultVersion is the result of Version in an execution that passed the position of the call before the call was
// added.
const DefaultVersion = replay.DefaultVersion

// Version returns the version of a change that applies to this execution. Use it to change the code of running
// instances inside a function:
//
//	if perdure.Version(ctx, "ask the new carrier", perdure.DefaultVersion, 1) == perdure.DefaultVersion {
//		quote = oldCarrier.Call(ctx, parcel)
//	} else {
//		quote = newCarrier.Call(ctx, parcel)
//	}
//
// The result is
//
//   - maxVersion, if the execution reaches the call for the first time. The version is recorded in the history.
//   - the recorded version, if the execution passed the call before.
//   - DefaultVersion, if the execution passed this position before the call was added.
//
// All calls for the same change return the same version until the execution ends, including calls in other coroutines
// and scopes. The next execution after a ContinueAsNew, and sub-orchestrations, have their own versions.
//
// If the version is not between minVersion and maxVersion, the instance is blocked, and its diagnosis names the code to
// deploy. To remove old code, raise minVersion when no running instance uses the old version. Keep the call until no
// running instance has passed it, and do not reuse the name of the change. See docs/guides/versioning.md. Version
// panics if change is empty, longer than 256 bytes or not valid UTF-8.
func Version(ctx *OrchestrationContext, change string, minVersion, maxVersion int) int {
	if err := names.Check("change", change); err != nil {
		panic("perdure: Version: " + err.Error())
	}
	return ctx.replay.Version(change, minVersion, maxVersion)
}
