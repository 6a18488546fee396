package hubstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// skJobs is the prefix of the sort keys of jobs. Their partition is the partition of the hub's items.
const skJobs = "job#"

// The attributes of a job's item.
const (
	attrJob      = "job" // as JSON
	attrRevision = "rev"
)

// jobLifetime is the time for which an ended job is stored.
const jobLifetime = 7 * 24 * time.Hour

// PutJob writes the whole item on condition that it has not changed since it was read. If the response to a write is
// lost, PutJob recognizes its own write by the content.
func (hs *Store) PutJob(ctx context.Context, j *provider.Job) error {
	doc, err := encodeJob(j)
	if err != nil {
		return fmt.Errorf("dynamo: job %s: %w", j.ID, err)
	}
	it := table.HubKey(skJobs + j.ID)
	it[attrJob] = table.Str(string(doc))
	it[attrRevision] = table.Num(j.Revision + 1)
	if j.Ended() {
		it[table.AttrTTL] = table.Unix(hs.now().Add(jobLifetime))
	}

	in := &dynamodb.PutItemInput{
		Item: it, ConditionExpression: aws.String(table.NotExists),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if j.Revision > 0 {
		in.ConditionExpression = aws.String("rev = :rev")
		in.ExpressionAttributeValues = table.Item{":rev": table.Num(j.Revision)}
	}

	err = hs.table.Put(ctx, "", in)
	old, refused := table.FailedItem(err, 0)
	switch {
	case refused &&
		(table.GetNumber(old, attrRevision) != j.Revision+1 || table.GetString(old, attrJob) != string(doc)):
		return fmt.Errorf("dynamo: job %s: %w", j.ID, provider.ErrConflict)
	case err != nil && !refused:
		return err
	}
	j.Revision++
	return nil
}

// encodeJob does not escape characters of IDs unless JSON requires it, so that a batch of the longest IDs fits an item.
func encodeJob(j *provider.Job) ([]byte, error) {
	var doc bytes.Buffer
	e := json.NewEncoder(&doc)
	e.SetEscapeHTML(false)
	if err := e.Encode(j); err != nil {
		return nil, fmt.Errorf("encode job: %w", err)
	}
	return bytes.TrimSpace(doc.Bytes()), nil
}

// ReadJob reads a job.
func (hs *Store) ReadJob(ctx context.Context, id string) (provider.Job, error) {
	found, err := hs.table.Get(ctx, "", table.HubKey(skJobs+id), provider.Strong)
	if err != nil {
		return provider.Job{}, err
	}
	if len(found) == 0 {
		return provider.Job{}, fmt.Errorf("dynamo: job %s: %w", id, provider.ErrNotFound)
	}
	return decodeJob(found)
}

// decodeJob rejects unknown fields, because a filter of a later release could otherwise select more instances than
// requested.
func decodeJob(it table.Item) (j provider.Job, err error) {
	doc := json.NewDecoder(strings.NewReader(table.GetString(it, attrJob)))
	doc.DisallowUnknownFields()
	err = doc.Decode(&j)
	if _, end := doc.Token(); err == nil && !errors.Is(end, io.EOF) {
		err = errors.New("text follows the job")
	}
	if err != nil {
		return j, fmt.Errorf("dynamo: item %s: %w", table.GetString(it, table.AttrSK), err)
	}
	j.Revision = table.GetNumber(it, attrRevision)
	return j, nil
}

// ListJobs reads the hub's jobs. The ID of a job is a ULID, which sorts by time, except those of jobs with a key, which
// come first. A job that cannot be read, for example a job of a later release, does not prevent others from being
// listed.
func (hs *Store) ListJobs(ctx context.Context) (jobs []provider.Job, err error) {
	in := table.PrefixQuery(table.PKHub, skJobs, provider.Strong)
	in.ScanIndexForward = aws.Bool(false)
	for it, err := range hs.table.Items(ctx, "", in) {
		if err != nil {
			return nil, err
		}
		j, err := decodeJob(it)
		if err != nil {
			hs.log.WarnContext(ctx, "bulk job unreadable, skipping it", "event", logevent.BulkJobUnreadable,
				"item", table.GetString(it, table.AttrSK), "error", err)
			continue
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}
