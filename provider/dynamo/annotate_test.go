package dynamo_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/dynamotest"
	"github.com/perdure/perdure/provider/providertest"
)

// notesTest is a test of the notes of instance "a".
type notesTest struct {
	*testing.T

	hub   providertest.Hub
	table *simaws.Table
}

// withInstance runs a test with an instance "a".
func withInstance(t *testing.T, test func(t notesTest)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var table *simaws.Table
		h := inMemory(t, providertest.Config{Visibility: time.Minute},
			func(_ *dynamotest.Cloud, c *simaws.Cloud) { table = c.Table })
		_, err := h.Provider.StartOrchestration(t.Context(), provider.Start{
			InstanceID: "a", Name: "order", Input: history.Payload("1"), StartID: "s", ExecutionID: "x1",
		})
		if err != nil {
			t.Fatal(err)
		}
		test(notesTest{t, h, table})
	})
}

// updateItem changes the item of instance "a" directly in the table.
func (t notesTest) updateItem(expression string, values map[string]types.AttributeValue) {
	t.Helper()
	_, err := t.table.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String("perdure"),
		Key: map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: "i#a"}, "sk": &types.AttributeValueMemberS{Value: "i"},
		},
		UpdateExpression: aws.String(expression), ExpressionAttributeValues: values,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAnnotate_responseIsLost_addsOneNote(t *testing.T) {
	withInstance(t, func(t notesTest) {
		for _, text := range []string{"one", "two"} {
			t.hub.Fail(providertest.Fault{
				Operation: providertest.Update, Failure: providertest.ResponseLost, Times: 1,
			})
			err := t.hub.Provider.Annotate(t.Context(), "a", provider.Note{Text: text, At: time.Now().UTC()})
			if err != nil {
				t.Fatal(err)
			}
		}
		in, err := t.hub.Provider.ReadInstance(t.Context(), "a")
		if err != nil || len(in.Notes) != 2 || in.Notes[0].Text != "one" || in.Notes[1].Text != "two" {
			t.Errorf("notes %+v, %v; want one and two", in.Notes, err)
		}
	})
}

func TestAnnotate_itemHasNoExecution_isNotFound(t *testing.T) {
	withInstance(t, func(t notesTest) {
		t.updateItem("REMOVE execution", nil)
		err := t.hub.Provider.Annotate(t.Context(), "a", provider.Note{Text: "x"})
		if !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("returned %v, want ErrNotFound", err)
		}
	})
}

func TestAnnotate_storedNotesAreDamaged_instanceStaysUsable(t *testing.T) {
	withInstance(t, func(t notesTest) {
		t.updateItem("SET notes = :n",
			map[string]types.AttributeValue{":n": &types.AttributeValueMemberS{Value: `[{"text":1}]`}})
		in, err := t.hub.Provider.ReadInstance(t.Context(), "a")
		if err != nil || in.Notes != nil || in.Name != "order" {
			t.Errorf("read %+v, %v; want the instance without notes", in, err)
		}
		if err := t.hub.Provider.Annotate(t.Context(), "a", provider.Note{Text: "x"}); err == nil {
			t.Error("a note replaced notes that cannot be read")
		}
		if err := t.hub.Provider.DeleteInstance(t.Context(), "a", true); err != nil {
			t.Error(err)
		}
	})
}

func TestAnnotate_notesAreOfMaximumSize_leaveRoomForADiagnosis(t *testing.T) {
	withInstance(t, func(t notesTest) {
		for n := range provider.MaxNotes {
			err := t.hub.Provider.Annotate(t.Context(), "a", provider.Note{
				Text: strings.Repeat("<", provider.MaxNoteBytes), By: strings.Repeat("&", history.MaxRequesterBytes),
				At: time.Now().Add(time.Duration(n)),
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		err := t.hub.Provider.BlockInstance(t.Context(), "a", "x1", "build",
			&history.Failure{Type: "t", Message: strings.Repeat("<", 16<<10)})
		if err != nil {
			t.Fatal(err)
		}
		page, err := t.hub.Provider.ListInstances(t.Context(), provider.ListQuery{Status: provider.StatusBlocked})
		if err != nil || len(page.Instances) != 1 || page.Instances[0].Notes != nil {
			t.Errorf("listed %d instances, %v; want one without notes", len(page.Instances), err)
		}
	})
}
