//go:build !perdure_lambda

package dynamo

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// FuzzParseParameter checks that the SSM parameter of a hub is rejected with an error that names it, or is encoded and
// parsed unchanged.
func FuzzParseParameter(f *testing.F) {
	for _, value := range []string{
		`{"hub":"shop","table":"shop","inboxUrl":"https://sqs/inbox","workQueues":{"default":"https://sqs/default"},` +
			`"timers":"schedules","payloadBucket":"b"}`,
		`{"hub":"other"}`, `{"table":5}`, `{"timers":"later"}`, `null`, ``,
	} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		h, err := parseParameter("shop", value)
		if err != nil {
			if !strings.HasPrefix(err.Error(), `dynamo: hub "shop": parameter `+ParameterName("shop")) {
				t.Errorf("error without the parameter: %v", err)
			}
			return
		}
		_ = h.validate() // must not panic
		doc, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := parseParameter("shop", string(doc)); err != nil || h.Name != "shop" ||
			!reflect.DeepEqual(again, h) {
			t.Errorf("%q: %+v, then %+v, error %v", value, h, again, err)
		}
	})
}
