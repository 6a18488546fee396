package apiclient_test

import (
	"testing"

	"github.com/perdure/perdure/internal/apiclient"
)

func TestServiceOf_hostName_returnsServiceAndRegion(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"a1b2.execute-api.eu-west-1.amazonaws.com":      "execute-api eu-west-1",
		"A1B2.Execute-Api.eu-west-1.AMAZONAWS.com.":     "execute-api eu-west-1",
		"a1b2.execute-api.cn-north-1.amazonaws.com.cn":  "execute-api cn-north-1",
		"a1b2.execute-api.eusc-de-east-1.amazonaws.eu":  "execute-api eusc-de-east-1",
		"a1b2.execute-api-fips.us-east-1.amazonaws.com": "execute-api us-east-1",
		"abc.lambda-url.us-east-1.on.aws":               "lambda us-east-1", "localhost": " ", "127.0.0.1": " ",
		"execute-api.example.com": " ", "a.execute-api.eu-west-1.example.com": " ",
		"s3.eu-west-1.amazonaws.com": " ", "api.example.com": " ", "a.lambda-url.us-east-2.on.aws.example.com": " ",
	} {
		if service, region := apiclient.ServiceOf(host); service+" "+region != want {
			t.Errorf("%s: %s %s, want %s", host, service, region, want)
		}
	}
}

func TestIsLoopback_host_isRecognized(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST.": true, "a.localhost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true,
		"localhost.example.com": false, "127.0.0.1.example.com": false, "10.0.0.1": false, "": false,
	} {
		if got := apiclient.IsLoopback(host); got != want {
			t.Errorf("%s: %v", host, got)
		}
	}
}
