package mcpserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/cmd/perdure/internal/operations"
)

type deadLetterArgs struct {
	Queue    string `json:"queue,omitempty" jsonschema:"queue of the dead letters: inbox, timers or a work queue"`
	Reason   string `json:"reason,omitempty" jsonschema:"prefix of the reason, such as corrupt:"`
	Instance string `json:"instance,omitempty" jsonschema:"ID of the instance that they belong to"`
	Limit    int    `json:"limit,omitempty" jsonschema:"maximum number of dead letters, 1 to 50, default 20"`
}

type noArgs struct{}

func (s *server) deadLetters(ctx context.Context, c call[deadLetterArgs]) (*toolResult, error) {
	limit, err := limitOf(c.in.Limit, 20, 50)
	if err != nil {
		return nil, err
	}
	found, err := s.hub.Admin.DeadLetters(ctx, admin.DeadLetterQuery{
		Queue: c.in.Queue, ReasonPrefix: c.in.Reason, InstanceID: c.in.Instance, TimeLimit: s.timeout / 2,
	}, limit)
	if err != nil {
		return nil, err
	}
	docs, err := encodeItems(operations.DeadLetterItems(found.Items))
	if err != nil {
		return nil, err
	}
	n := fitting(docs, maxListBytes)
	a := &toolResult{Summary: fmt.Sprintf("%d dead letters.", n)}
	if !found.Complete || n < len(docs) {
		a.notifyf("There may be more dead letters: count_dead_letters has the totals, and filters select others.")
	}
	text := operations.DeadLetterTable(found.Items[:n])
	return a, a.setData(text, struct {
		Complete bool `json:"complete"`
	}{found.Complete && n == len(docs)}, list{nameItems, docs[:n]})
}

func (s *server) countDeadLetters(ctx context.Context, _ call[noArgs]) (*toolResult, error) {
	counts, err := s.hub.Admin.CountDeadLetters(ctx)
	if err != nil {
		return nil, err
	}
	docs, err := encodeItems(counts)
	if err != nil {
		return nil, err
	}
	total := 0
	var text strings.Builder
	for _, c := range counts {
		total += c.Visible + c.InFlight
		fmt.Fprintf(&text, "%s: about %d, including %d hidden\n", c.Queue, c.Visible+c.InFlight, c.InFlight)
	}
	a := &toolResult{Summary: fmt.Sprintf("About %d dead letters in %d queues.", total, len(counts))}
	return a, a.setData(text.String(), struct{}{}, list{nameQueues, docs[:fitting(docs, maxListBytes)]})
}
