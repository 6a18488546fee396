package instances

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

const attrNotes = "notes"

// Annotate adds a note on condition that the notes have not changed. It first assumes that there are none. A condition
// that fails returns the current item.
func (is *Store) Annotate(ctx context.Context, instanceID string, n provider.Note) error {
	var old table.Item
	for {
		notes, err := decodeNotes(old)
		if err != nil {
			return fmt.Errorf("dynamo: instance %q: notes: %w", instanceID, err)
		}
		doc, err := json.Marshal(provider.AddNote(notes, n))
		if err != nil {
			return fmt.Errorf("dynamo: instance %q: notes: %w", instanceID, err)
		}
		err = is.table.Update(ctx, instanceID, notesUpdate(instanceID, old, string(doc)))
		found, changed := table.FailedItem(err, 0)
		if !changed {
			return err
		}
		if len(found) == 0 || IsTombstone(found) || IsDeleting(found) {
			return fmt.Errorf("dynamo: instance %q: %w", instanceID, provider.ErrNotFound)
		}
		old = found
	}
}

func notesUpdate(instanceID string, old table.Item, notes string) *dynamodb.UpdateItemInput {
	in := &dynamodb.UpdateItemInput{
		Key:              table.InstanceKey(instanceID),
		UpdateExpression: aws.String("SET notes = :notes"),
		ConditionExpression: aws.String("attribute_exists(execution) AND attribute_not_exists(deleting) AND " +
			"attribute_not_exists(notes)"),
		ExpressionAttributeValues:           table.Item{":notes": table.Str(notes)},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if old[attrNotes] != nil {
		in.ConditionExpression = aws.String("attribute_not_exists(deleting) AND notes = :old")
		in.ExpressionAttributeValues[":old"] = old[attrNotes]
	}
	return in
}

// decodeNotes returns the notes of an instance, the oldest first. Items of older releases have none.
func decodeNotes(it table.Item) (notes []provider.Note, err error) {
	if doc := table.GetString(it, attrNotes); doc != "" {
		err = json.Unmarshal([]byte(doc), &notes)
	}
	return notes, err
}
