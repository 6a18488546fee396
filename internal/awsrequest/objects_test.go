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
	failed := func(codes ...string) string {
		body := "<DeleteResult>"
		for i, code := range codes {
			body += "<Error><Key>" + string(rune('a'+i)) + "</Key><Code>" + code + "</Code><Message>why</Message></Error>"
		}
		return body + "</DeleteResult>"
	}
	for _, test := range []struct {
		name, body, want string
		failed           int
		transient        bool
	}{
		{"deleted", `<DeleteResult></DeleteResult>`, "", 0, false},
		{"empty body", "\n", "", 0, false},
		{"throttled", failed("SlowDown"), "delete: SlowDown: object a (1 failed): why", 1, true},
		{"internal errors", failed("InternalError", "InternalError"), "delete: InternalError: object b (2 failed): why", 2, true},
		{"denied", failed("SlowDown", "AccessDenied", "SlowDown"), "delete: AccessDenied: object b (3 failed): why", 3, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			failed, err := awsrequest.DecodeDeletion("delete", []byte(test.body))
			if err != nil {
				got = err.Error()
			}
			if got != test.want || failed != test.failed || awsrequest.IsTransient(err) != test.transient {
				t.Errorf("got %q, %d failed, transient: %v", got, failed, awsrequest.IsTransient(err))
			}
		})
	}
}

// A response that cannot be decoded is not a success, and only a decoded failure has a code.
func FuzzDecodeDeletion(f *testing.F) {
	f.Add([]byte(`<DeleteResult><Error><Key>a</Key><Code>SlowDown</Code><Message>b</Message></Error></DeleteResult>`))
	f.Add([]byte(`<DeleteResult><Error/>`))
	f.Fuzz(func(t *testing.T, body []byte) {
		n, err := awsrequest.DecodeDeletion("delete", body)
		e, failed := errors.AsType[*awsrequest.APIError](err)
		var anything struct{}
		valid := xml.Unmarshal(body, &anything) == nil || len(bytes.TrimSpace(body)) == 0
		if failed && e.Operation != "delete" || !valid && err == nil || failed != (n > 0) || failed && !valid {
			t.Errorf("got %v for a valid response: %v", err, valid)
		}
	})
}
