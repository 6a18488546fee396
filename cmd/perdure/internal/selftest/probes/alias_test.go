package probes

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// simulatedVersions is a function with two versions. Updates and new versions take some seconds.
type simulatedVersions struct {
	updated, published, shifted time.Time
	weight                      map[string]float64
	aliasErr                    error
	// One of every invocations runs the new version. 0 means 2, and a negative number means none.
	every       int64
	early       bool // the new version runs before the alias names it
	invocations atomic.Int64
}

func (v *simulatedVersions) UpdateFunctionConfiguration(
	context.Context, *lambda.UpdateFunctionConfigurationInput, ...func(*lambda.Options),
) (*lambda.UpdateFunctionConfigurationOutput, error) {
	v.updated = time.Now().Add(4 * time.Second)
	return &lambda.UpdateFunctionConfigurationOutput{}, nil
}

func (v *simulatedVersions) PublishVersion(
	context.Context, *lambda.PublishVersionInput, ...func(*lambda.Options),
) (*lambda.PublishVersionOutput, error) {
	if v.updated.IsZero() || time.Now().Before(v.updated) {
		return nil, &types.ResourceConflictException{Message: aws.String("an update is in progress")}
	}
	out := &lambda.PublishVersionOutput{Version: aws.String("2"), State: types.StatePending}
	if v.published.IsZero() {
		v.published = time.Now().Add(3 * time.Second)
	}
	if !time.Now().Before(v.published) {
		out.State = types.StateActive
	}
	return out, nil
}

func (v *simulatedVersions) UpdateAlias(
	_ context.Context, in *lambda.UpdateAliasInput, _ ...func(*lambda.Options),
) (*lambda.UpdateAliasOutput, error) {
	if time.Now().Before(v.published) {
		return nil, errors.New("the version is pending")
	}
	v.shifted, v.weight = time.Now().Add(20*time.Second), in.RoutingConfig.AdditionalVersionWeights
	return &lambda.UpdateAliasOutput{}, v.aliasErr
}

// version returns the version that runs the next invocation.
func (v *simulatedVersions) version() string {
	if !v.early && (v.shifted.IsZero() || time.Now().Before(v.shifted)) || time.Now().Before(v.published) {
		return "1"
	}
	every := cmp.Or(v.every, 2)
	if v.invocations.Add(1)%every == 0 && every > 0 {
		return "2"
	}
	return "1"
}

func TestAliasProbes_weights_decide(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		versions  *simulatedVersions
		want      string
		differs   bool
		undecided bool
	}{
		"distributed": {versions: &simulatedVersions{}, want: "version 2 receives 20 of 40 messages"},
		"ignored": {
			versions: &simulatedVersions{every: -1}, want: "version 2 receives no messages for 2m0s", differs: true,
		},
		"all": {
			versions: &simulatedVersions{every: 1}, want: "version 2 receives 40 of 40 messages", differs: true,
		},
		"few": {
			versions: &simulatedVersions{every: 10}, want: "version 2 receives 4 of 40 messages", undecided: true,
		},
		"shifted before": {
			versions: &simulatedVersions{early: true}, want: "a version that the alias does not name", differs: true,
		},
		"rejected": {
			versions: &simulatedVersions{aliasErr: errors.New("no")}, want: "update alias: no", undecided: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := simulated(t, nil)
				f, _ := p.Functions.(*simulatedFunction)
				f.versions, p.Versions = c.versions, c.versions
				f.serve(t)
				detail, err := p.check("lambda-alias").Run(t.Context())
				got := detail
				if err != nil {
					got = err.Error()
				}
				_, open := errors.AsType[*UndecidedError](err)
				if !strings.Contains(got, c.want) || open != c.undecided || (err != nil && !open) != c.differs {
					t.Errorf("got %q, %v", detail, err)
				}
				if w := c.versions.weight["2"]; w != 0.5 && !c.versions.early {
					t.Errorf("the alias has the weights %v", c.versions.weight)
				}
			})
		})
	}
}
