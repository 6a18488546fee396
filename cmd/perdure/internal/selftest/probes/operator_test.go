package probes

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/smithy-go"
)

// simulatedOperator has the errors of updates by the mapping, and those of all updates before a time.
type simulatedOperator struct {
	errs   map[string]error
	exists time.Time
}

func (o *simulatedOperator) UpdateEventSourceMapping(
	_ context.Context, in *lambda.UpdateEventSourceMappingInput, _ ...func(*lambda.Options),
) (*lambda.UpdateEventSourceMappingOutput, error) {
	if time.Now().Before(o.exists) {
		return nil, errDenied
	}
	return &lambda.UpdateEventSourceMappingOutput{}, o.errs[*in.UUID]
}

func TestOperatorProbes_permissions_decide(t *testing.T) {
	t.Parallel()
	inUse := &smithy.GenericAPIError{Code: "ResourceInUseException", Message: "updating"}
	for want, c := range map[string]struct {
		own, other error
		delay      time.Duration
		undecided  bool
	}{
		"": {other: errDenied, delay: 20 * time.Second},
		"the role may update the mapping of another function":        {},
		"the role may not update the mapping of its function":        {own: errDenied, undecided: true},
		"update mapping: api error ResourceInUseException: updating": {other: inUse, undecided: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := simulated(t, nil)
			p.Operator = &simulatedOperator{
				errs:   map[string]error{"own": c.own, "other": c.other},
				exists: time.Now().Add(c.delay),
			}
			_, err := p.check("iam-operator").Run(t.Context())
			_, open := errors.AsType[*UndecidedError](err)
			if (err == nil) != (want == "") || open != c.undecided || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}
