package perdure

import (
	"fmt"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/replay"
)

// DefaultVersion is what Version returns to an execution that had passed it before the call was there.
const DefaultVersion = replay.DefaultVersion

// maxChangeBytes is how long the name of a change may be.
const maxChangeBytes = 256

// Version returns which version of a change of the code an execution goes by, so that instances that run go on as they began
// while the code is changed inside of a function:
//
//	if perdure.Version(ctx, "ask the new carrier", perdure.DefaultVersion, 1) == perdure.DefaultVersion {
//		quote = oldCarrier.Call(ctx, parcel) // as it was
//	} else {
//		quote = newCarrier.Call(ctx, parcel)
//	}
//
// An execution that reaches the call with this code goes by maxVersion, which is recorded in history. One that has passed it
// before goes by what is recorded there, or by DefaultVersion where nothing is: then the call was not there yet. The first
// answer about a change stays until the execution ends, whatever asks: another call, a loop, another coroutine or scope, one that
// is cancelled too. The next execution, after a ContinueAsNew, begins with none; children have their own.
//
// A version that is not from minVersion to maxVersion, or none being in that range, blocks the instance: the diagnosis says
// which code to deploy, and it goes on once that is there. So raise minVersion, and take the old code away, when no instance
// goes by it any more. The call itself stays where it is, with one version left, until no instance is under way that has
// passed it; then it may go, and change is not to be used again for something else.
//
// change is 1 to 256 bytes of UTF-8; Version panics with any other.
func Version(ctx *OrchestrationContext, change string, minVersion, maxVersion int) int {
	if change == "" || len(change) > maxChangeBytes || !utf8.ValidString(change) {
		panic(fmt.Sprintf("perdure: Version: the name of a change has 1 to %d bytes of UTF-8, is %q", maxChangeBytes, bounded(change)))
	}
	return replay.Version(ctx.replay, change, minVersion, maxVersion)
}
