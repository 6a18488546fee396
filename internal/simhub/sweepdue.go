package simhub

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/internal/simaws"
)

// The sweeper finds its work with queries. Before each move of the clock, this hub reads the table directly instead,
// which is much cheaper. A superfluous tick is harmless. A missing tick would leave work undone.

// Names of the table's indexes.
const (
	indexByAttention = "byAttention"
	indexByDue       = "byDue"
)

// The prefixes of partition keys of the index by attention that the sweeper revisits. Blocked instances are not among
// them, because Deploy runs the sweeper.
const (
	attentionPending  = "pending"  // sorted by due time
	attentionDeleting = "deleting" // sorted by its last progress
)

const (
	pendingFor  = 2*time.Minute + time.Millisecond // a started instance is due after this time
	lateBy      = time.Hour                        // the delay of the second search for such instances
	deletingFor = 2 * time.Minute                  // a deletion without progress is due after this time
)

// due returns the time from which a sweep has work, which may be in the past. The caller holds the lock.
func (s *Sweeper) due() (at time.Time, ok bool) {
	if len(s.jobs) > 0 {
		return s.began, true
	}
	earlier := func(other time.Time) {
		if !ok || other.Before(at) {
			at, ok = other, true
		}
	}
	for _, due := range s.starts {
		earlier(due)
	}
	if due, some := s.attentionDue(attentionPending); some {
		earlier(due)
	}
	if updated, some := s.attentionDue(attentionDeleting); some {
		earlier(updated.Add(deletingFor))
	}
	if due, some := s.retentionDue(); some {
		earlier(due)
	}
	if s.hasLetters() {
		earlier(s.outage.Add(time.Nanosecond))
	}
	return at, ok
}

// attentionDue returns the earliest sort key of a kind in the index by attention.
func (s *Sweeper) attentionDue(kind string) (at time.Time, ok bool) {
	first := ""
	for partition, updated := range s.hub.Cloud.Table.Heads(indexByAttention) {
		if strings.HasPrefix(partition, kind) && (first == "" || updated < first) {
			first = updated
		}
	}
	at, err := time.Parse(time.RFC3339, first)
	return at, err == nil
}

// retentionDue returns the first day on which a retention ends.
func (s *Sweeper) retentionDue() (at time.Time, ok bool) {
	first := ""
	for partition := range s.hub.Cloud.Table.Heads(indexByDue) {
		if day, _, _ := strings.Cut(partition, "#"); first == "" || day < first {
			first = day
		}
	}
	at, err := time.Parse(time.DateOnly, first)
	return at, err == nil
}

// hasLetters reports whether there are dead letters after an outage. It ignores other dead letters. Without an outage,
// a message that was delivered a hundred times has an unregistered activity. Its recovery would never end.
func (s *Sweeper) hasLetters() bool {
	if s.outage.IsZero() {
		return false
	}
	for _, url := range s.hub.Provider.Config().DeadLetters {
		if s.hub.Cloud.Queues.Len(url) > 0 {
			return true
		}
	}
	return false
}

// interceptor records which jobs are running. A write of a job contains the whole item, with a TTL if the job has
// ended.
func (s *Sweeper) interceptor(inner simaws.Interceptor) simaws.Interceptor {
	return func(ctx context.Context, c simaws.Call, next func() error) error {
		noted := func() error {
			err := next()
			if put, ok := c.Input.(*dynamodb.PutItemInput); ok && err == nil {
				s.noteJob(put)
			}
			return err
		}
		if inner != nil {
			return inner(ctx, c, noted)
		}
		return noted()
	}
}

func (s *Sweeper) noteJob(put *dynamodb.PutItemInput) {
	id, isJob := strings.CutPrefix(text(put.Item["sk"]), "job#")
	if !isJob || text(put.Item["pk"]) != pkHub || *put.TableName != s.hub.Cloud.Table.Name {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, over := put.Item["ttl"]; over {
		delete(s.jobs, id)
	} else {
		s.jobs[id] = true
	}
}
