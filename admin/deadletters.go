package admin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// DeadLetter is a record in a dead-letter queue.
type DeadLetter = provider.DeadLetter

// ErrDeadLettersUnsupported means that the client's Backend does not support dead letters. See provider.DeadLetters.
var ErrDeadLettersUnsupported error = provider.UnsupportedError{Capability: provider.CapabilityDeadLetters}

// DeadLetterQuery selects dead letters. A dead letter must match all fields that are not zero.
type DeadLetterQuery struct {
	// Queue is the source queue of the dead letters: "inbox", "timers" or the name of a work queue.
	Queue string
	// ReasonPrefix is a prefix of the reason, such as "corrupt:".
	ReasonPrefix string
	// InstanceID is the instance to which the dead letters belong.
	InstanceID string
	// IDs are the IDs of the dead letters.
	IDs []string
	// SentBefore excludes dead letters that were moved to the dead-letter queue later. Zero means no limit. A redrive
	// without IDs uses its start time instead of zero, so that it does not redrive a record twice.
	SentBefore time.Time
	// TimeLimit is the approximate maximum duration of the search for dead letters. 0 means no limit. When a redrive or
	// drop reaches the limit, the dead letters that it received and did not process stay hidden for two minutes. The
	// next call therefore finds others. A negative value results in a *provider.FieldError.
	TimeLimit time.Duration
}

// DeadLetterList is a list of dead letters.
type DeadLetterList struct {
	Items []DeadLetter
	// Complete is false if the call stopped before it had received all visible dead letters.
	Complete bool
}

// DeadLetterCount is the approximate number of dead letters of a queue. InFlight is the number of dead letters that are
// hidden because another process has received them. The sweeper hides dead letters while it checks them.
type DeadLetterCount struct {
	Queue    string `json:"queue"`
	Visible  int    `json:"visible"`
	InFlight int    `json:"hidden"`
}

// DeadLetterResult is the result of a redrive or a drop.
type DeadLetterResult struct {
	// Done counts dead letters that were redriven or dropped. Skipped counts selected dead letters that only
	// [ForceRedrive] redrives. TooRecent counts dead letters that only SentBefore excluded, including dead letters that
	// were redriven and failed again. Failed counts dead letters whose redrive or drop failed.
	Done, Skipped, TooRecent, Failed int64
	// SentNotDeleted holds the IDs of dead letters that were sent again but could not be deleted. Drop these dead
	// letters, because a redrive would send them again.
	SentNotDeleted []string
	// Complete is false if more dead letters may match. The call has then reached the limit of 100,000 dead letters,
	// its time limit or the end of ctx.
	Complete bool
}

// RedriveOption is an option of RedriveDeadLetters.
type RedriveOption func(*redriveOptions)

type redriveOptions struct{ force bool }

// ForceRedrive also redrives dead letters for which [IsHandled] returns true. An event may then be applied twice.
func ForceRedrive() RedriveOption { return func(o *redriveOptions) { o.force = true } }

// defaultDeadLetters is the default limit of a list of dead letters.
const defaultDeadLetters = 100

// CountDeadLetters returns the approximate number of dead letters of each queue, sorted by queue name.
func (c *Client) CountDeadLetters(ctx context.Context) ([]DeadLetterCount, error) {
	counts, err := c.ops.countDeadLetters(ctx)
	if err != nil {
		return nil, fmt.Errorf("admin: dead letters: %w", err)
	}
	return counts, nil
}

func (l local) countDeadLetters(ctx context.Context) ([]DeadLetterCount, error) {
	hub, err := l.deadLetterBackend()
	if err != nil {
		return nil, err
	}
	queues := hub.DeadLetterQueues()
	counts := make([]DeadLetterCount, len(queues))
	for i, queue := range queues {
		counts[i].Queue = queue
		if counts[i].Visible, counts[i].InFlight, err = hub.CountDeadLetters(ctx, queue); err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// DeadLetters returns up to limit dead letters that match q, sorted by queue name. The limit is 1 to 1,000; 0 means
// 100. The call hides the dead letters from other processes while it runs. There is no next page, because SQS does not
// order dead letters.
//
// DeadLetters does not return dead letters that another process has hidden. It returns at most ten dead letters of the
// inbox for each instance. CountDeadLetters returns the total number.
func (c *Client) DeadLetters(ctx context.Context, q DeadLetterQuery, limit int) (list DeadLetterList, err error) {
	if err := inputcheck.Limit(limit); err != nil {
		return list, fmt.Errorf("admin: dead letters: %w", err)
	}
	if limit == 0 {
		limit = defaultDeadLetters
	}
	if err = checkTimeLimit(&q); err == nil {
		list, err = c.ops.deadLetters(ctx, q, limit)
	}
	if err != nil {
		return DeadLetterList{}, fmt.Errorf("admin: dead letters: %w", err)
	}
	return list, nil
}

func (l local) deadLetters(ctx context.Context, q DeadLetterQuery, limit int) (list DeadLetterList, err error) {
	s, err := l.newDeadLetterScan(q)
	if err != nil {
		return list, err
	}
	s.concurrency = 1
	s.readOnly = true
	s.process = func(_ context.Context, _ string, letters ...DeadLetter) error {
		list.Items = append(list.Items, letters...)
		return nil
	}
	s.enough = func() bool { return len(list.Items) >= limit }
	if err = s.run(ctx); err != nil {
		return DeadLetterList{}, err
	}
	list.Complete = !s.incomplete && !s.enough() || len(q.IDs) > 0 && s.missingIDs == 0
	list.Items = list.Items[:min(limit, len(list.Items))]
	return list, nil
}

// RedriveDeadLetters sends the dead letters that match q to their queues as new records and then deletes them. Without
// ForceRedrive it skips dead letters for which IsHandled returns true.
//
// No dead letter is lost if the process dies, but the next call sends a record again that was sent and not deleted. The
// inbox drops such a duplicate within five minutes. After that time, only an event without an ID is applied twice. A
// single call never sends a dead letter twice. DeadLetterResult.SentNotDeleted lists the dead letters that it sent and
// could not delete.
//
// The error joins up to ten errors of dead letters that failed. The other dead letters are redriven.
func (c *Client) RedriveDeadLetters(
	ctx context.Context, q DeadLetterQuery, opts ...RedriveOption,
) (DeadLetterResult, error) {
	var o redriveOptions
	for _, opt := range opts {
		opt(&o)
	}
	if q.SentBefore.IsZero() && len(q.IDs) == 0 {
		q.SentBefore = c.now()
	}
	if err := checkTimeLimit(&q); err != nil {
		return DeadLetterResult{}, fmt.Errorf("admin: redrive: %w", err)
	}
	result, err := c.ops.redriveDeadLetters(ctx, q, o.force)
	if err != nil {
		return result, fmt.Errorf("admin: redrive: %w", err)
	}
	return result, nil
}

func (l local) redriveDeadLetters(ctx context.Context, q DeadLetterQuery, force bool) (DeadLetterResult, error) {
	s, err := l.newDeadLetterScan(q)
	if err != nil {
		return DeadLetterResult{}, err
	}
	if !force {
		s.skip = IsHandled
	}
	s.process = s.hub.RedriveDeadLetters
	err = s.run(ctx)
	return s.result(), err
}

// DropDeadLetters permanently deletes the dead letters that match q. If the process dies, the remaining dead letters
// are unchanged.
func (c *Client) DropDeadLetters(ctx context.Context, q DeadLetterQuery) (DeadLetterResult, error) {
	if err := checkTimeLimit(&q); err != nil {
		return DeadLetterResult{}, fmt.Errorf("admin: drop: %w", err)
	}
	result, err := c.ops.dropDeadLetters(ctx, q)
	if err != nil {
		return result, fmt.Errorf("admin: drop: %w", err)
	}
	return result, nil
}

func (l local) dropDeadLetters(ctx context.Context, q DeadLetterQuery) (DeadLetterResult, error) {
	s, err := l.newDeadLetterScan(q)
	if err != nil {
		return DeadLetterResult{}, err
	}
	s.process = s.hub.DropDeadLetters
	err = s.run(ctx)
	return s.result(), err
}

// IsHandled reports whether a dead letter needs no redrive because history already contains its record or because the
// record was sent again.
func IsHandled(d *DeadLetter) bool {
	return strings.HasPrefix(d.Reason, provider.ReasonPoison) || strings.HasPrefix(d.Reason, provider.ReasonRecovered)
}
