package localcloud

import (
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/perdure/perdure/internal/awsrequest"
)

// Config returns a configuration for clients of the emulator at an endpoint. The clients share their connections, and
// keep responses that arrive before the end of a request is checked.
func Config(endpoint string) aws.Config {
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: &endpoint, HTTPClient: awsrequest.HTTPClient{Next: http.DefaultClient},
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}
}
