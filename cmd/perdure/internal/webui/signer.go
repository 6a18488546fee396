package webui

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
)

// transportFor returns the transport for an endpoint. It signs requests to endpoints of AWS.
func transportFor(ctx context.Context, to *url.URL) (http.RoundTripper, error) {
	service, region := serviceOf(to.Hostname())
	if service == "" {
		return http.DefaultTransport, nil
	}
	if to.Scheme != "https" {
		return nil, fmt.Errorf("--api must start with https:// for %s, because signed requests contain a session token",
			to.Host)
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("load AWS credentials for %s: %w", to.Host, err)
	}
	return &signer{
		credentials: cfg.Credentials, service: service, region: region, next: http.DefaultTransport, now: time.Now,
	}, nil
}

// serviceOf returns the service and the region for the signature of a request: execute-api for an HTTP API, and lambda
// for a function URL. Both are empty for every other host.
func serviceOf(host string) (service, region string) {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	labels := strings.Split(host, ".")
	const name, in = 1, 2 // <id>.<service>.<region>.amazonaws.com, or .on.aws
	isAWS := slices.ContainsFunc([]string{".amazonaws.com", ".amazonaws.com.cn", ".on.aws"}, func(suffix string) bool {
		return strings.HasSuffix(host, suffix)
	})
	if len(labels) < 5 || !isAWS {
		return "", ""
	}
	switch labels[name] {
	case "execute-api":
		return "execute-api", labels[in]
	case "lambda-url":
		return "lambda", labels[in]
	default:
		return "", ""
	}
}

// signer signs requests (SigV4).
type signer struct {
	credentials     aws.CredentialsProvider
	service, region string
	next            http.RoundTripper
	now             func() time.Time
}

// RoundTrip implements http.RoundTripper.
func (s *signer) RoundTrip(r *http.Request) (*http.Response, error) {
	body := []byte{}
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, fmt.Errorf("read the request: %w", err)
		}
		_ = r.Body.Close() // the body has been read
	}
	who, err := s.credentials.Retrieve(r.Context())
	if err != nil {
		return nil, fmt.Errorf("retrieve AWS credentials: %w", err)
	}

	out := r.Clone(r.Context())
	out.Body = io.NopCloser(bytes.NewReader(body))
	out.ContentLength = int64(len(body))
	for _, name := range []string{"X-Forwarded-For", "Connection", "Accept-Encoding"} {
		out.Header.Del(name) // gateways change these headers, so the signature must not include them
	}
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	if err := v4.NewSigner().SignHTTP(r.Context(), who, out, hash, s.service, s.region, s.now()); err != nil {
		return nil, fmt.Errorf("sign the request: %w", err)
	}
	return s.next.RoundTrip(out)
}
