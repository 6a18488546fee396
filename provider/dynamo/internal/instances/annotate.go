package instances

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/notes"
)

const attrNotes = "notes"

// maxAnnotateTries is the maximum number of writes of one note. Each failed one means that another note was added.
const maxAnnotateTries = 20

// Annotate adds a note on condition that the notes have not changed. It first assumes that there are no notes. A failed
// condition returns the current item.
func (is *Store) Annotate(ctx context.Context, instanceID string, n provider.Note) error {
	var old table.Item
	for range maxAnnotateTries {
		stored, err := decodeNotes(old)
		if err != nil {
			return fmt.Errorf("dynamo: instance %q: notes: %w", instanceID, err)
		}
		if notes.Contains(stored, &n) {
			return nil // the response to an earlier try was lost
		}
		doc, err := encodeNotes(notes.Add(stored, n))
		if err != nil {
			return fmt.Errorf("dynamo: instance %q: notes: %w", instanceID, err)
		}
		err = is.table.Update(ctx, instanceID, notesUpdate(instanceID, old, doc))
		found, changed := table.FailedItem(err, 0)
		if !changed {
			return err
		}
		if found[table.AttrExecution] == nil || IsTombstone(found) || IsDeleting(found) {
			return fmt.Errorf("dynamo: instance %q: %w", instanceID, provider.ErrNotFound)
		}
		old = found
	}
	return &provider.Error{Op: "Annotate", InstanceID: instanceID, Retryable: true, Err: provider.ErrConflict}
}

// encodeNotes does not escape characters for HTML, so that notes of maximum size leave space in the item.
func encodeNotes(all []provider.Note) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(all); err != nil {
		return "", err //nolint:wrapcheck // Annotate wraps it
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

func notesUpdate(instanceID string, old table.Item, doc string) *dynamodb.UpdateItemInput {
	in := &dynamodb.UpdateItemInput{
		Key:              table.InstanceKey(instanceID),
		UpdateExpression: aws.String("SET notes = :notes"),
		ConditionExpression: aws.String("attribute_exists(execution) AND attribute_not_exists(deleting) AND " +
			"attribute_not_exists(notes)"),
		ExpressionAttributeValues:           table.Item{":notes": table.Str(doc)},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if old[attrNotes] != nil {
		in.ConditionExpression = aws.String("attribute_not_exists(deleting) AND notes = :old")
		in.ExpressionAttributeValues[":old"] = old[attrNotes]
	}
	return in
}

// decodeNotes returns the notes of an instance, the oldest first. Items of older releases have none.
func decodeNotes(it table.Item) (all []provider.Note, err error) {
	if doc := table.GetString(it, attrNotes); doc != "" {
		err = json.Unmarshal([]byte(doc), &all)
	}
	return all, err //nolint:wrapcheck // the callers wrap the error
}
