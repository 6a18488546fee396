package probes

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// OperatorConfig has mappings, and the credentials of a role that may update those of one function.
type OperatorConfig struct {
	Operator MappingAPI
	// OwnMapping is a mapping of this function, OtherMapping of another one. Both are UUIDs.
	OwnMapping, OtherMapping string
}

// MappingAPI is the call of Lambda that changes a mapping.
type MappingAPI interface {
	UpdateEventSourceMapping(
		ctx context.Context, in *lambda.UpdateEventSourceMappingInput, opts ...func(*lambda.Options),
	) (*lambda.UpdateEventSourceMappingOutput, error)
}

// operatorProbes checks assumptions about the permissions of operators.
type operatorProbes struct {
	clock
	OperatorConfig
}

func (p *operatorProbes) checks() []Check {
	return []Check{{Name: "iam-operator", Assumptions: []string{"A153"}, Run: p.updateMappings}}
}

// updateMappings changes a mapping of the permitted function, which shows that the role exists, and one of another
// function. Both already have the batch size.
func (p *operatorProbes) updateMappings(ctx context.Context) (string, error) {
	if err := p.untilPermitted(ctx, func() error {
		return p.update(ctx, p.OwnMapping, ThrottledBatch)
	}); err != nil {
		return "", fmt.Errorf("the role may not update the mapping of its function: %w", err)
	}
	switch err := p.update(ctx, p.OtherMapping, MappedBatch); {
	case err == nil:
		return "", errors.New("the role may update the mapping of another function")
	case codeOf(err) != accessDenied:
		return "", undecided(err)
	}
	return "only the mapping of the permitted function can be updated", nil
}

func (p *operatorProbes) update(ctx context.Context, mapping string, batch int32) error {
	_, err := p.Operator.UpdateEventSourceMapping(ctx, &lambda.UpdateEventSourceMappingInput{
		UUID: &mapping, BatchSize: aws.Int32(batch),
	})
	if err != nil {
		return fmt.Errorf("update mapping: %w", err)
	}
	return nil
}
