package awsrequest

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"net/http"
)

// ObjectVersion identifies an S3 object, or a version of it.
type ObjectVersion struct {
	Key string `xml:"Key"`
	// VersionID is the ID of a version or delete marker, or empty for the current version.
	VersionID string `xml:"VersionId,omitempty"`
}

// EncodeDeletion encodes the body of a DeleteObjects request for up to 1,000 objects.
func EncodeDeletion(objects []ObjectVersion) ([]byte, error) {
	body, err := xml.Marshal(struct {
		XMLName xml.Name        `xml:"http://s3.amazonaws.com/doc/2006-03-01/ Delete"`
		Quiet   bool            `xml:"Quiet"`
		Objects []ObjectVersion `xml:"Object"`
	}{Quiet: true, Objects: objects})
	if err != nil {
		return nil, fmt.Errorf("encode objects to delete: %w", err)
	}
	return body, nil
}

// DecodeDeletion decodes a response to a DeleteObjects request. It returns the number of objects that were not deleted,
// with an APIError for one of them, whose status is that of a response with its code. If an error is not transient, it
// returns that one. A response that cannot be decoded has the number 0.
func DecodeDeletion(operation string, body []byte) (failed int, err error) {
	var out struct {
		Errors []struct {
			Key     string `xml:"Key"`
			Code    string `xml:"Code"`
			Message string `xml:"Message"`
		} `xml:"Error"`
	}
	if err := xml.Unmarshal(body, &out); err != nil && len(bytes.TrimSpace(body)) > 0 {
		return 0, fmt.Errorf("%s: decode response: %w", operation, err)
	}
	for _, e := range out.Errors {
		status := http.StatusOK
		if e.Code == "InternalError" || e.Code == "ServiceUnavailable" { // temporary
			status = http.StatusServiceUnavailable
		}
		err = &APIError{
			Operation: operation, Code: e.Code, Status: status,
			Message: fmt.Sprintf("object %s (%d failed): %s", e.Key, len(out.Errors), e.Message),
		}
		if !IsTransient(err) {
			break
		}
	}
	return len(out.Errors), err
}
