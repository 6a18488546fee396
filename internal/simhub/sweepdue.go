package simhub

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/internal/simaws"
)

// The watch finds its work by queries. A hub that asks before each move of its clock looks into the table instead,
// which costs next to nothing. A tick too many is harmless; one too few leaves work undone that a deployed hub does.

// Names of the table's indexes.
const (
	indexByAttention = "byAttention"
	indexByDue       = "byDue"
)

// The kinds of the index by attention that the watch comes back to by itself, each the beginning of a partition key. A
// blocked instance is none of them: Deploy runs the watch.
const (
	attentionPending  = "pending"  // sorted by when it is due
	attentionDeleting = "deleting" // sorted by its last progress
)

const (
	pendingFor  = 2*time.Minute + time.Millisecond // an instance that was started is due after it
	lateBy      = time.Hour                        // how far behind the second search for such instances is
	deletingFor = 2 * time.Minute                  // a deletion without progress is due after it
)

// due returns since when, or from when on, there is something to do. The caller holds the lock.
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

// attentionDue returns the earliest time by which one kind of the index by attention is sorted.
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

// retentionDue returns the first day on which a retention is over.
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

// hasLetters reports whether there are dead letters, and an outage that may have led to them. Others stay where they
// are: a message that is delivered a hundred times without an outage has no worker that knows its activity, and to pick
// it up again would keep the hub from coming to rest.
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

// interceptor notes which jobs are under way: each write of one is of the whole item, which has an end of its life when
// the job is over.
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
