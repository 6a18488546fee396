package awsrequest

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
)

// APIError is an error response of AWS. It implements smithy.APIError.
type APIError struct {
	// Operation is the operation that failed, for example "create change set".
	Operation string
	// Code is the error code of AWS. It is empty if the response has no error in its body.
	Code    string
	Message string
	Status  int // the HTTP status
}

// Error implements error.
func (e *APIError) Error() string {
	text := e.Operation + ": " + e.Code
	if e.Code == "" {
		text += fmt.Sprintf("HTTP status %d", e.Status)
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	switch {
	case e.Code == "" && e.Status == http.StatusBadRequest: // the response to a HEAD request has no body
		text += "; check whether the AWS credentials have expired"
	case slices.Contains([]string{"ExpiredToken", "ExpiredTokenException"}, e.Code):
		text += "; renew the AWS credentials"
	case slices.Contains([]string{"RequestExpired", "RequestTimeTooSkewed", "SignatureDoesNotMatch"}, e.Code):
		text += "; check the AWS credentials and the clock of this machine"
	}
	return text
}

// ErrorCode implements smithy.APIError.
func (e *APIError) ErrorCode() string { return e.Code }

// ErrorMessage implements smithy.APIError.
func (e *APIError) ErrorMessage() string { return e.Message }

// ErrorFault implements smithy.APIError.
func (e *APIError) ErrorFault() smithy.ErrorFault {
	if e.Status >= http.StatusInternalServerError {
		return smithy.FaultServer
	}
	return smithy.FaultClient
}

// HTTPStatusCode returns the HTTP status, like the response errors of the SDK.
func (e *APIError) HTTPStatusCode() int { return e.Status }

// DecodeError decodes an error response. S3 has the error as root element, CloudFormation below it. CloudWatch Logs has
// it in JSON. The response to a HEAD request, or of a proxy, has no error in its body.
func DecodeError(operation string, status int, body []byte) *APIError {
	type awsError struct {
		Code    string `xml:"Code"`
		Message string `xml:"Message"`
	}
	var decoded struct {
		awsError

		Nested awsError `xml:"Error"`
	}
	_ = xml.Unmarshal(body, &decoded) // a proxy may return another format
	found := decoded.awsError
	if found.Code == "" {
		found = decoded.Nested
	}
	if found.Code == "" {
		var document struct {
			Type    string `json:"__type"`
			Message string `json:"message"` // also Message
		}
		_ = json.Unmarshal(body, &document)
		found.Code, found.Message = document.Type[strings.LastIndex(document.Type, "#")+1:], document.Message
	}
	return &APIError{Operation: operation, Code: found.Code, Message: found.Message, Status: status}
}

var transient = retry.IsErrorRetryables(append(
	slices.Clone(retry.DefaultRetryables), retry.RetryableErrorCode{Codes: retry.DefaultThrottleErrorCodes},
))

// IsTransient reports whether the SDK would repeat a request after an error. It also supports errors of SDK clients.
func IsTransient(err error) bool { return transient.IsErrorRetryable(err) == aws.TrueTernary }
