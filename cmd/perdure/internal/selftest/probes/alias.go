package probes

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/perdure/perdure/cmd/perdure/internal/selftest/app/probefunction"
)

// VersionAPI has the calls that publish a version of a function and shift invocations to it. *lambda.Client implements
// it.
type VersionAPI interface {
	UpdateFunctionConfiguration(
		ctx context.Context, in *lambda.UpdateFunctionConfigurationInput, opts ...func(*lambda.Options),
	) (*lambda.UpdateFunctionConfigurationOutput, error)
	PublishVersion(
		ctx context.Context, in *lambda.PublishVersionInput, opts ...func(*lambda.Options),
	) (*lambda.PublishVersionOutput, error)
	UpdateAlias(
		ctx context.Context, in *lambda.UpdateAliasInput, opts ...func(*lambda.Options),
	) (*lambda.UpdateAliasOutput, error)
}

// Alias is the alias of the function AliasedName.
const Alias = "live"

// AliasConfig has a function with an alias of its version 1, and a queue with a mapping of the alias.
type AliasConfig struct {
	Versions    VersionAPI
	AliasedName string
	AliasedURL  string
}

// aliasProbes checks assumptions about aliases.
type aliasProbes struct {
	*functionClient
	AliasConfig

	sent int // messages
}

// slowChecks returns checks that wait for minutes.
func (p *aliasProbes) slowChecks() []Check {
	return []Check{{Name: "lambda-alias", Assumptions: []string{"A194"}, Run: p.weights, Slow: true}}
}

// weights sends messages to version 1, shifts half of the invocations to a new version, and sends more messages after
// the change has taken effect.
func (p *aliasProbes) weights(ctx context.Context) (string, error) {
	const half, times, limit, pause = 0.5, 4, 2 * time.Minute, 10 * time.Second
	const least, most = times * aliasMessages / 5, times * aliasMessages * 4 / 5 // in all but one of 10,000 runs
	version, err := p.publish(ctx)
	if err != nil {
		return "", undecided(err)
	}
	early, err := p.count(ctx, version)
	if err != nil || early > 0 {
		return "", cmpErr(err, "messages run a version that the alias does not name")
	}
	if _, err := p.Versions.UpdateAlias(ctx, &lambda.UpdateAliasInput{
		FunctionName: &p.AliasedName, Name: aws.String(Alias), RoutingConfig: &lambdatypes.AliasRoutingConfiguration{
			AdditionalVersionWeights: map[string]float64{version: half},
		},
	}); err != nil {
		return "", undecided(fmt.Errorf("update alias: %w", err))
	}
	if err := p.until(ctx, limit, pause, func() (missing, err error) {
		n, err := p.count(ctx, version)
		if n == 0 {
			missing = fmt.Errorf("with a weight of %v, version %s receives no messages for %v", half, version, limit)
		}
		return missing, err
	}); err != nil {
		return "", err
	}
	shifted := 0
	for range times {
		if err := p.Sleep(ctx, pause); err != nil {
			return "", undecided(err)
		}
		n, err := p.count(ctx, version)
		if err != nil {
			return "", err
		}
		shifted += n
	}
	detail := fmt.Sprintf("with a weight of %v, version %s receives %d of %d messages", half, version, shifted,
		times*aliasMessages)
	switch {
	case shifted == 0, shifted == times*aliasMessages:
		return "", errors.New(detail)
	case shifted < least, shifted > most:
		return "", undecided(errors.New(detail))
	}
	return detail, nil
}

// aliasMessages is the number of messages that are sent together.
const aliasMessages = 10

// count sends messages, and returns the number of those that a version has received.
func (p *aliasProbes) count(ctx context.Context, version string) (received int, err error) {
	const check = "lambda-alias"
	tasks, want := make([]probefunction.Task, aliasMessages), map[string]int{}
	for i := range tasks {
		tasks[i] = probefunction.Task{Check: check, Name: strconv.Itoa(p.sent + i)}
		want[tasks[i].Name] = 1
	}
	p.sent += aliasMessages
	if err := p.sendTasks(ctx, p.AliasedURL, tasks...); err != nil {
		return 0, err
	}
	all, err := p.await(ctx, check, want)
	if err != nil {
		return 0, err
	}
	for i := range tasks {
		if receives(all, tasks[i].Name)[0].Version == version {
			received++
		}
	}
	return received, nil
}

// publish publishes a version of the function that differs from its version 1, and waits until it can run.
func (p *aliasProbes) publish(ctx context.Context) (version string, err error) {
	const limit, pause = time.Minute, time.Second
	if _, err := p.Versions.UpdateFunctionConfiguration(ctx, &lambda.UpdateFunctionConfigurationInput{
		FunctionName: &p.AliasedName, Description: aws.String("version 2"),
	}); err != nil {
		return "", fmt.Errorf("update function: %w", err)
	}
	err = p.until(ctx, limit, pause, func() (missing, err error) { // repeated calls return the same version
		out, err := p.Versions.PublishVersion(ctx, &lambda.PublishVersionInput{FunctionName: &p.AliasedName})
		if _, updating := errors.AsType[*lambdatypes.ResourceConflictException](err); updating {
			return fmt.Errorf("publish version: %w", err), nil
		}
		if err != nil {
			return nil, fmt.Errorf("publish version: %w", err)
		}
		version = aws.ToString(out.Version)
		if out.State == lambdatypes.StatePending {
			missing = fmt.Errorf("version %s is pending", version)
		}
		return missing, nil
	})
	return version, err
}
