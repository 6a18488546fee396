package turns

import "github.com/perdure/perdure/provider"

// suspected is an item of an instance on which a mark stands, and how many do.
type suspected struct {
	item *provider.OrchestrationItem
	died int
}

// suspectError: a mark stands on the message that leads to the turn, which is not to run beside others.
type suspectError struct{ died int }

func (e *suspectError) Error() string { return "dispatch: message has a crash marker" }
