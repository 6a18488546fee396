package mcpserver

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/cmd/perdure/internal/operations"
)

// nameQueues is the name of the tool and of its data.
const nameQueues = "queues"

func (s *server) queues(ctx context.Context, _ call[noArgs]) (*toolResult, error) {
	queues, err := s.hub.Admin.Queues(ctx)
	if err != nil {
		return nil, err
	}
	docs, err := encodeItems(queues)
	if err != nil {
		return nil, err
	}
	without := 0
	for i := range queues {
		if queues[i].NoWorker {
			without++
		}
	}
	n := fitting(docs, maxListBytes)
	a := &toolResult{
		Summary: fmt.Sprintf("%d queues, %d of them with work and without a worker.", len(queues), without),
	}
	if n < len(docs) {
		a.notifyf("The data has only the first %d queues: use perdure queues for all of them.", n)
	}
	return a, a.setData(operations.QueueTable(queues[:n], s.env.Now()), struct{}{}, list{nameQueues, docs[:n]})
}
