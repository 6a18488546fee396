package localcloud

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// CreateTable creates a table.
func CreateTable(tb testing.TB, client *dynamodb.Client, in *dynamodb.CreateTableInput) {
	tb.Helper()
	if err := EnsureTable(tb.Context(), client, in); err != nil {
		tb.Fatal(err)
	}
}

// EnsureTable creates a table if none has its name. The SDK repeats a request whose response is lost, so a new name can
// also be that of a table that exists.
func EnsureTable(ctx context.Context, client *dynamodb.Client, in *dynamodb.CreateTableInput) error {
	_, err := client.CreateTable(ctx, in)
	if _, exists := errors.AsType[*types.ResourceInUseException](err); exists {
		return nil
	}
	return err
}

// TableInput returns the input of CreateTable for a table with the definition of the stack.
func TableInput(name string) *dynamodb.CreateTableInput {
	key := func(name string, k types.KeyType) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: &name, KeyType: k}
	}
	in := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{key("pk", types.KeyTypeHash), key("sk", types.KeyTypeRange)},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName:  aws.String("byCreation"),
			KeySchema:  []types.KeySchemaElement{key("gs", types.KeyTypeHash), key("created", types.KeyTypeRange)},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}, {
			IndexName: aws.String("byAttention"),
			KeySchema: []types.KeySchemaElement{
				key("attention", types.KeyTypeHash), key("updated", types.KeyTypeRange),
			},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}, {
			IndexName:  aws.String("byDue"),
			KeySchema:  []types.KeySchemaElement{key("due", types.KeyTypeHash), key("created", types.KeyTypeRange)},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}},
	}
	for _, attribute := range []string{"pk", "sk", "gs", "created", "attention", "updated", "due"} {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: aws.String(attribute), AttributeType: types.ScalarAttributeTypeS,
		})
	}
	return in
}
