package awsrequest_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"testing"

	"github.com/perdure/perdure/internal/awsrequest"
)

func TestEncodeDeletion_keysWithMarkup_areEscaped(t *testing.T) {
	body, err := awsrequest.EncodeDeletion([]awsrequest.ObjectVersion{{Key: "a<b>&c"}, {Key: "d", VersionID: "null"}})
	const want = `<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Quiet>true</Quiet>` +
		`<Object><Key>a&lt;b&gt;&amp;c</Key></Object><Object><Key>d</Key><VersionId>null</VersionId></Object></Delete>`
	if err != nil || string(body) != want {
		t.Errorf("got %s, %v, want %s", body, err, want)
	}
}

func TestDecodeDeletion_failedObjects_areErrors(t *testing.T) {
	failed := func(code string) string {
		return `<DeleteResult><Error><Key>a</Key><Code>` + code + `</Code><Message>why</Message></Error>` +
			`<Error><Key>b</Key><Code>AccessDenied</Code></Error></DeleteResult>`
	}
	for _, test := range []struct {
		name, body, want string
		transient        bool
	}{
		{"deleted", `<DeleteResult></DeleteResult>`, "", false},
		{"empty body", "\n", "", false},
		{"throttled", failed("SlowDown"), "delete: SlowDown: object a (2 failed): why", true},
		{"internal error", failed("InternalError"), "delete: InternalError: object a (2 failed): why", true},
		{"denied", failed("AccessDenied"), "delete: AccessDenied: object a (2 failed): why", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			err := awsrequest.DecodeDeletion("delete", []byte(test.body))
			if err != nil {
				got = err.Error()
			}
			if got != test.want || awsrequest.IsTransient(err) != test.transient {
				t.Errorf("got %q, transient: %v", got, awsrequest.IsTransient(err))
			}
		})
	}
}

// A response that cannot be decoded is not a success, and only a decoded failure has a code.
func FuzzDecodeDeletion(f *testing.F) {
	f.Add([]byte(`<DeleteResult><Error><Key>a</Key><Code>SlowDown</Code><Message>b</Message></Error></DeleteResult>`))
	f.Add([]byte(`<DeleteResult><Error/>`))
	f.Fuzz(func(t *testing.T, body []byte) {
		err := awsrequest.DecodeDeletion("delete", body)
		e, failed := errors.AsType[*awsrequest.APIError](err)
		var anything struct{}
		valid := xml.Unmarshal(body, &anything) == nil || len(bytes.TrimSpace(body)) == 0
		if failed && e.Operation != "delete" || !valid && err == nil || failed && !valid {
			t.Errorf("got %v for a valid response: %v", err, valid)
		}
	})
}
