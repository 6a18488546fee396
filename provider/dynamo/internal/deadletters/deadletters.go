// Package deadletters lists, redrives and deletes the dead letters of a hub, and finds those that SQS has moved.
package deadletters

import (
	"github.com/perdure/perdure/provider/dynamo/internal/inbox"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/timers"
	"github.com/perdure/perdure/provider/dynamo/internal/tokens"
)

// DeadLetters processes the dead letters of a hub. It is safe for concurrent use.
type DeadLetters struct {
	queue  *sqsqueue.Queues
	inbox  *inbox.Inbox
	timers *timers.Timers
	tokens *tokens.Keys
}

// New returns the dead letters of a hub.
func New(q *sqsqueue.Queues, in *inbox.Inbox, tm *timers.Timers, keys *tokens.Keys) *DeadLetters {
	return &DeadLetters{queue: q, inbox: in, timers: tm, tokens: keys}
}
