package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// Identity is the identity of AWS credentials.
type Identity struct{ ARN, Account, Region string }

// ReadIdentity reads the identity of the default AWS credentials from STS.
func ReadIdentity(ctx context.Context) (Identity, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return Identity{}, fmt.Errorf("load AWS settings: %w", err)
	}
	out, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return Identity{Region: cfg.Region}, fmt.Errorf("get identity: %w; check AWS credentials, AWS_PROFILE and "+
			"AWS_REGION", err)
	}
	return Identity{aws.ToString(out.Arn), aws.ToString(out.Account), cfg.Region}, nil
}

// Subject returns the subject of a JWT. It does not verify the signature.
func Subject(token string) (string, error) {
	parts := strings.Split(token, ".")
	const count = 3
	if len(parts) != count {
		return "", errors.New("token is not a JWT")
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", errors.New("claims of the JWT are not base64url")
	}
	var c struct {
		Subject string `json:"sub"`
	}
	if json.Unmarshal(claims, &c) != nil {
		return "", errors.New("claims of the JWT are not valid JSON")
	}
	return c.Subject, nil
}
