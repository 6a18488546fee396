package awsrequest_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/awsrequest"
)

// Whatever the body of an error response is, the error has the operation and the status, and a code only from the body.
func FuzzDecodeError(f *testing.F) {
	f.Add([]byte(`<Error><Code>AccessDenied</Code><Message>why</Message></Error>`), http.StatusForbidden)
	f.Add([]byte(`<ErrorResponse><Error><Code>ValidationError</Code></Error></ErrorResponse>`), http.StatusBadRequest)
	f.Add([]byte(`<html><body>Bad Gateway`), http.StatusBadGateway)
	f.Add([]byte(`{"__type":"com.amazonaws.logs#ThrottlingException","Message":"why"}`), http.StatusBadRequest)
	f.Add([]byte{}, http.StatusNotFound)
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		e := awsrequest.DecodeError("create bucket", status, body)
		if e.HTTPStatusCode() != status || !strings.HasPrefix(e.Error(), "create bucket: ") {
			t.Errorf("got %v with status %d, want status %d", e, e.HTTPStatusCode(), status)
		}
		// a document in JSON can have its code in __type, with any case and with escapes
		if e.Code != "" && !bytes.Contains(body, []byte("Code")) && !json.Valid(body) {
			t.Errorf("got the code %q", e.Code)
		}
	})
}

func TestDecodeError_eachFormat_hasCodeAndMessage(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`<Error><Code>AccessDenied</Code><Message>why</Message></Error>`,
		`<ErrorResponse><Error><Code>AccessDenied</Code><Message>why</Message></Error></ErrorResponse>`,
		`{"__type":"AccessDenied","message":"why"}`,
		`{"__type":"com.amazonaws.logs#AccessDenied","Message":"why"}`,
	} {
		e := awsrequest.DecodeError("read", http.StatusForbidden, []byte(body))
		if e.Code != "AccessDenied" || e.Message != "why" {
			t.Errorf("%s: got %+v", body, e)
		}
	}
}
