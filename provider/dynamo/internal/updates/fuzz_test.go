package updates

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// FuzzDecode checks that the result of an update is returned unchanged, or rejected with an error that names the
// update.
func FuzzDecode(f *testing.F) {
	f.Add("u-1", "failed", `{"a":1}`, `{"type":"DeclinedError","message":"no","details":{"code":5}}`)
	f.Add("", "", "", "")
	f.Add("u", "completed", "{", `[]`)
	f.Fuzz(func(t *testing.T, id, outcome, result, failure string) {
		u, err := decode("order", table.Item{
			"updateId": table.Str(id), attrOutcome: table.Str(outcome), "result": table.Str(result),
			"error": table.Str(failure),
		})
		if err != nil {
			if !strings.HasPrefix(err.Error(), `dynamo: instance "order": result of update `) {
				t.Errorf("error without the update: %v", err)
			}
			return
		}
		if u.UpdateID != id || string(u.Outcome) != outcome || string(u.Result) != result {
			t.Errorf("%+v", u)
		}
		if u.Error == nil {
			return
		}
		doc, err := encodeError(&u)
		var again *history.Failure
		if err != nil || json.Unmarshal([]byte(doc), &again) != nil || again.Message != u.Error.Message {
			t.Errorf("%q: %+v, then %s, error %v", failure, u.Error, doc, err)
		}
	})
}
