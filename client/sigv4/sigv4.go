// Package sigv4 signs the requests of client.Dial and admin.Dial with AWS credentials, for an HTTP API with IAM
// authorization:
//
//	cfg, err := config.LoadDefaultConfig(ctx)
//	if err != nil {
//		return err
//	}
//	c, err := client.Dial("https://a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com", sigv4.WithConfig(cfg))
//
// It is a package of its own, so that package client does not need the AWS SDK.
package sigv4

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/apiclient"
)

// The services for which requests are signed.
const (
	// ServiceAPIGateway is the service of an API of API Gateway.
	ServiceAPIGateway = apiclient.ServiceAPIGateway
	// ServiceLambda is the service of a function URL.
	ServiceLambda = apiclient.ServiceLambda
)

// Option is an option of WithConfig.
type Option func(*options)

type options struct{ service, region string }

// WithService sets the service, which is ServiceAPIGateway or ServiceLambda. The default is that of the endpoint's
// host, and ServiceAPIGateway for a custom domain.
func WithService(name string) Option { return func(o *options) { o.service = name } }

// WithRegion sets the region. The default is that of the endpoint's host, and that of the configuration for a custom
// domain.
func WithRegion(region string) Option { return func(o *options) { o.region = region } }

// WithConfig signs each request with the credentials of an AWS configuration, which are read before each attempt. Dial
// returns an error if the configuration has no credentials, or if the region is unknown.
func WithConfig(cfg aws.Config, opts ...Option) client.DialOption {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	return apiclient.OptionFunc(func(c *apiclient.Config) error {
		service, region := apiclient.ServiceOf(c.Endpoint.Hostname())
		o := options{firstOf(o.service, service, ServiceAPIGateway), firstOf(o.region, region, cfg.Region)}
		switch {
		case cfg.Credentials == nil:
			return errors.New("sigv4: AWS configuration has no credentials")
		case o.region == "":
			return errors.New("sigv4: region is unknown; use WithRegion")
		}
		signer, now := v4.NewSigner(), c
		c.Authenticate = func(ctx context.Context, r *http.Request, body []byte) error {
			credentials, err := cfg.Credentials.Retrieve(ctx)
			if err != nil {
				return fmt.Errorf("sigv4: retrieve credentials: %w", err)
			}
			sum := sha256.Sum256(body)
			hash := hex.EncodeToString(sum[:])
			r.Header.Set("X-Amz-Content-Sha256", hash)
			if err := signer.SignHTTP(ctx, credentials, r, hash, o.service, o.region, now.Now().UTC()); err != nil {
				return fmt.Errorf("sigv4: sign request: %w", err)
			}
			return nil
		}
		return nil
	})
}

// firstOf returns the first text that is not empty.
func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
