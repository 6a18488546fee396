package hubadmin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventstypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/provider"
)

// Mapping is a trigger of one of the hub's functions: the event source mapping of a queue, or the EventBridge rule that
// runs the sweeper.
type Mapping struct {
	// Queue is the name of the queue. It is empty for a rule.
	Queue string `json:"queue,omitempty"`
	// UUID is the UUID of a mapping, or "rule/" followed by the name of a rule.
	UUID string `json:"uuid"`
	// Function is the name of the function.
	Function string `json:"function"`
	// State is the state that Lambda reports: "Enabled", "Disabled", or a transitional state such as "Enabling". A rule
	// is "Enabled" or "Disabled".
	State string `json:"state"`

	// functionARN can be the ARN of an alias. modified is Lambda's LastModified, and empty for a rule. shape holds the
	// settings that a deployment can change.
	functionARN, modified, shape string
	// concurrency is the MaximumConcurrency, or 0 if there is none.
	concurrency int32
}

// The states of mappings that Lambda reports.
const (
	stateEnabled  = "Enabled"
	stateDisabled = "Disabled"
	// The transitional states.
	stateEnabling  = "Enabling"
	stateDisabling = "Disabling"
)

// rulePrefix distinguishes the names of rules from the UUIDs of mappings.
const rulePrefix = "rule/"

// Mappings returns the event source mappings of the hub's queues, sorted by queue, and then the rules that run the
// sweeper.
func (h *Admin) Mappings(ctx context.Context) ([]Mapping, error) {
	queues := h.queues()
	var all []Mapping
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		arn, err := h.arnOf(ctx, queues[name])
		if err != nil {
			return nil, err
		}
		in := &lambda.ListEventSourceMappingsInput{EventSourceArn: &arn}
		for {
			out, err := h.Lambda.ListEventSourceMappings(ctx, in)
			if err != nil {
				return nil, fmt.Errorf("hubadmin: list mappings of queue %s: %w", name, err)
			}
			for i := range out.EventSourceMappings {
				m := &out.EventSourceMappings[i]
				all = append(all, Mapping{
					Queue: name, UUID: aws.ToString(m.UUID), Function: functionName(aws.ToString(m.FunctionArn)),
					State:       aws.ToString(m.State),
					functionARN: aws.ToString(m.FunctionArn), modified: modified(m.LastModified), shape: shapeOf(m),
					concurrency: maximumConcurrency(m),
				})
			}
			if in.Marker = out.NextMarker; in.Marker == nil {
				break
			}
		}
	}
	rules, err := h.rules(ctx, all)
	return append(all, rules...), err
}

// functionName returns the name in a function ARN: arn:aws:lambda:<region>:<account>:function:<name>[:<alias>].
func functionName(arn string) string {
	const name = 6
	if parts := strings.Split(arn, ":"); len(parts) > name {
		return parts[name]
	}
	return arn
}

// unqualified removes the alias or version from a function ARN.
func unqualified(arn string) string {
	const parts = 7
	return strings.Join(strings.SplitN(arn, ":", parts+1)[:min(parts, strings.Count(arn, ":")+1)], ":")
}

// shapeOf returns the settings of a mapping that a deployment can change. Enabling and disabling do not change them.
func shapeOf(m *lambdatypes.EventSourceMappingConfiguration) string {
	return fmt.Sprintf("%s batch %d window %d concurrency %d", aws.ToString(m.FunctionArn), aws.ToInt32(m.BatchSize),
		aws.ToInt32(m.MaximumBatchingWindowInSeconds), maximumConcurrency(m))
}

func maximumConcurrency(m *lambdatypes.EventSourceMappingConfiguration) int32 {
	if m.ScalingConfig == nil {
		return 0
	}
	return aws.ToInt32(m.ScalingConfig.MaximumConcurrency)
}

func modified(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format(time.RFC3339Nano)
}

// rules finds the rules that invoke the renewer, the function of the timers queue, which runs the sweeper.
func (h *Admin) rules(ctx context.Context, mappings []Mapping) ([]Mapping, error) {
	targets := map[string]bool{}
	for i := range mappings {
		if m := &mappings[i]; m.Queue == provider.QueueTimers && h.Events != nil {
			targets[m.functionARN], targets[unqualified(m.functionARN)] = true, true
		}
	}
	found := map[string]string{} // function by rule name
	for _, arn := range slices.Sorted(maps.Keys(targets)) {
		in := &eventbridge.ListRuleNamesByTargetInput{TargetArn: &arn}
		for {
			out, err := h.Events.ListRuleNamesByTarget(ctx, in)
			if err != nil {
				return nil, fmt.Errorf("hubadmin: list rules that invoke %s: %w", functionName(arn), err)
			}
			for _, name := range out.RuleNames {
				found[name] = functionName(arn)
			}
			if in.NextToken = out.NextToken; in.NextToken == nil {
				break
			}
		}
	}

	var rules []Mapping
	for _, name := range slices.Sorted(maps.Keys(found)) {
		m := Mapping{UUID: rulePrefix + name, Function: found[name]}
		var err error
		if m.State, err = h.stateOf(ctx, m.UUID); err != nil {
			return nil, fmt.Errorf("hubadmin: read state of %s: %w", m.UUID, err)
		}
		rules = append(rules, m)
	}
	return rules, nil
}

// stateOf reads the state of a mapping or rule.
func (h *Admin) stateOf(ctx context.Context, uuid string) (string, error) {
	if name, ok := strings.CutPrefix(uuid, rulePrefix); ok {
		out, err := h.Events.DescribeRule(ctx, &eventbridge.DescribeRuleInput{Name: &name})
		switch {
		case err != nil:
			return "", err
		case out.State == eventstypes.RuleStateDisabled:
			return stateDisabled, nil
		default:
			return stateEnabled, nil
		}
	}
	out, err := h.Lambda.GetEventSourceMapping(ctx, &lambda.GetEventSourceMappingInput{UUID: &uuid})
	if err != nil {
		return "", err
	}
	return aws.ToString(out.State), nil
}

// setState enables or disables a mapping or rule. A mapping changes asynchronously.
func (h *Admin) setState(ctx context.Context, uuid string, enabled bool) error {
	name, isRule := strings.CutPrefix(uuid, rulePrefix)
	var err error
	switch {
	case isRule && enabled:
		_, err = h.Events.EnableRule(ctx, &eventbridge.EnableRuleInput{Name: &name})
	case isRule:
		_, err = h.Events.DisableRule(ctx, &eventbridge.DisableRuleInput{Name: &name})
	default:
		_, err = h.Lambda.UpdateEventSourceMapping(ctx, &lambda.UpdateEventSourceMappingInput{
			UUID: &uuid, Enabled: &enabled,
		})
	}
	return err
}

func (h *Admin) arnOf(ctx context.Context, url string) (string, error) {
	attributes, err := h.attributes(ctx, url, sqstypes.QueueAttributeNameQueueArn)
	return attributes[string(sqstypes.QueueAttributeNameQueueArn)], err
}

func (h *Admin) attributes(ctx context.Context, url string, names ...sqstypes.QueueAttributeName) (
	map[string]string, error,
) {
	out, err := h.Queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: names})
	if err != nil {
		return nil, fmt.Errorf("hubadmin: read attributes of queue %s: %w", url, err)
	}
	return out.Attributes, nil
}

// InFlight returns the approximate number of messages that are being processed, by queue. Queues without such messages
// are omitted. After a pause, functions process the messages that they have received for up to 15 minutes.
func (h *Admin) InFlight(ctx context.Context) (map[string]int, error) {
	handled := map[string]int{}
	const name = sqstypes.QueueAttributeNameApproximateNumberOfMessagesNotVisible
	for queue, url := range h.queues() {
		attributes, err := h.attributes(ctx, url, name)
		if err != nil {
			return nil, err
		}
		if n, err := strconv.Atoi(attributes[string(name)]); err == nil && n > 0 {
			handled[queue] = n
		}
	}
	return handled, nil
}
