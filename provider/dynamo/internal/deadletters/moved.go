package deadletters

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// maxMovedRecords is the maximum number of dead letters of a queue that one call reads. Dead letters that wait for an
// operator stay in the queue for days.
const maxMovedRecords = 1000

// hideTime is the time for which received dead letters are invisible. It exceeds the time of a call, so that a call
// receives no dead letter twice, and is shorter than the time until the next call.
const hideTime = time.Minute

// DeadLetteredRecords receives dead letters and yields those without the attribute that the provider adds to its own
// copies. It does not wait. If a short poll of SQS misses a dead letter, the next call finds it. In the dead-letter
// queue of the inbox, more than 10 poison messages of an instance hide later dead letters of that instance until an
// operator removes the poison messages.
func (dd *DeadLetters) DeadLetteredRecords(ctx context.Context) iter.Seq2[provider.DeadLetteredRecord, error] {
	return func(yield func(provider.DeadLetteredRecord, error) bool) {
		for _, queue := range dd.queue.Dead().Names() {
			for m, err := range dd.movedRecords(ctx, queue) {
				if !yield(m, err) {
					return
				}
			}
		}
	}
}

func (dd *DeadLetters) movedRecords(ctx context.Context, queue string) iter.Seq2[provider.DeadLetteredRecord, error] {
	return func(yield func(provider.DeadLetteredRecord, error) bool) {
		for seen := 0; seen < maxMovedRecords; {
			letters, err := dd.queue.Dead().Receive(ctx, dd.queue.DeadLetters[queue], hideTime, 0)
			if err != nil {
				yield(provider.DeadLetteredRecord{}, fmt.Errorf("dynamo: receive dead letters of queue %s: %w", queue,
					err))
				return
			}
			if len(letters) == 0 {
				return
			}
			seen += len(letters)
			for i := range letters {
				if _, ours := letters[i].MessageAttributes[sqsqueue.AttrReason]; ours {
					continue
				}
				if !yield(provider.DeadLetteredRecord{Queue: queue, Record: sqsqueue.RecordOf(&letters[i])}, nil) {
					return
				}
			}
		}
	}
}

// AnnotateDeadLetter sends the copy before it deletes the original: a duplicate does no harm, but a lost record would.
// The copy has a message group of its own, because it is not processed any more. In its instance's group it would block
// later dead letters.
func (dd *DeadLetters) AnnotateDeadLetter(ctx context.Context, m provider.DeadLetteredRecord, why error) error {
	kept := table.Digest("kept", m.Record.ID)
	if err := dd.queue.Dead().PutCopy(
		ctx, m.Queue, provider.Unreadable{Record: m.Record, Err: why}, kept, kept,
	); err != nil {
		return err
	}
	return dd.queue.DeleteBatch(ctx, dd.queue.DeadLetters[m.Queue], []provider.Record{m.Record})
}
