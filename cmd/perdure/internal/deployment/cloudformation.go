package deployment

import (
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Stack is a CloudFormation stack.
type Stack struct {
	ID, Name, Status    string
	Parameters, Outputs map[string]string
}

// ChangeSetRequest describes a change set.
type ChangeSetRequest struct {
	Stack, Name string
	// Create is true if the stack does not exist or has no resources yet.
	Create      bool
	TemplateURL string
	// Parameters has new values. The stack keeps the values of Kept.
	Parameters map[string]string
	Kept       []string
	// Tags replaces the tags of the stack and of its resources. If it is empty, the stack keeps its tags.
	Tags  map[string]string
	Token string // identifies the request if it is repeated
}

// ChangeSet is the difference between a stack and a template.
type ChangeSet struct {
	Status, Reason string
	Changes        []Change
}

// Change is a change of a resource.
type Change struct {
	// Action is Add, Modify, Remove, Import or Dynamic.
	Action string `xml:"Action"`
	// Resource is the logical ID.
	Resource string `xml:"LogicalResourceId"`
	Type     string `xml:"ResourceType"`
	// Replacement is True, False, Conditional, or empty if the resource is added or removed.
	Replacement string `xml:"Replacement"`
}

// Event is an event of a stack or of its resource.
type Event struct {
	ID       string `xml:"EventId"`
	Resource string `xml:"LogicalResourceId"`
	Physical string `xml:"PhysicalResourceId"`
	Type     string `xml:"ResourceType"`
	Status   string `xml:"ResourceStatus"`
	Reason   string `xml:"ResourceStatusReason"`
}

// StackAPI is the part of CloudFormation that a deployment needs.
type StackAPI interface {
	// DescribeStack returns a stack, or nil if it does not exist. stack is a name or an ID.
	DescribeStack(ctx context.Context, stack string) (*Stack, error)
	CreateChangeSet(ctx context.Context, r *ChangeSetRequest) error
	DescribeChangeSet(ctx context.Context, stack, name string) (*ChangeSet, error)
	// DeleteChangeSet succeeds if the change set or the stack does not exist.
	DeleteChangeSet(ctx context.Context, stack, name string) error
	// ExecuteChangeSet starts the changes. The token identifies the request if it is repeated.
	ExecuteChangeSet(ctx context.Context, stack, name, token string) error
	// StackEvents returns the newest events, the newest first, until stop returns true for an event. It does not return
	// this event.
	StackEvents(ctx context.Context, stack string, stop func(e *Event) bool) ([]Event, error)
}

const (
	cloudFormationVersion = "2010-05-15"
	serviceCloudFormation = "cloudformation"

	fieldStack     = "StackName"
	fieldChangeSet = "ChangeSetName"
	fieldNextToken = "NextToken"

	codeValidation     = "ValidationError"
	codeNoChangeSet    = "ChangeSetNotFound"
	codeChangeSetState = "InvalidChangeSetStatus"
	codeAlreadyExists  = "AlreadyExistsException"
)

// cloudFormation implements StackAPI with the query API of CloudFormation.
type cloudFormation struct {
	*caller

	endpoint string
}

// do makes a call and decodes the response.
func (c *cloudFormation) do(ctx context.Context, operation, action string, values url.Values, into any) error {
	values.Set("Action", action)
	values.Set("Version", cloudFormationVersion)
	body, err := c.call(ctx, &request{
		operation: operation, service: serviceCloudFormation, method: http.MethodPost, url: c.endpoint + "/",
		header: map[string]string{contentType: "application/x-www-form-urlencoded; charset=utf-8"},
		body:   []byte(values.Encode()),
	})
	if err != nil {
		return err
	}
	if into == nil {
		return nil
	}
	if err := xml.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s: decode response: %w", operation, err)
	}
	return nil
}

// isMissing reports whether an error means that the stack does not exist.
func isMissing(err error) bool {
	return hasCode(err, codeValidation) && strings.Contains(err.Error(), "does not exist")
}

type keyValue struct {
	ParameterKey, ParameterValue, OutputKey, OutputValue string
}

// DescribeStack implements StackAPI.
func (c *cloudFormation) DescribeStack(ctx context.Context, stack string) (*Stack, error) {
	var out struct {
		Stacks []struct {
			StackID    string     `xml:"StackId"`
			StackName  string     `xml:"StackName"`
			Status     string     `xml:"StackStatus"`
			Parameters []keyValue `xml:"Parameters>member"`
			Outputs    []keyValue `xml:"Outputs>member"`
		} `xml:"DescribeStacksResult>Stacks>member"`
	}
	err := c.do(ctx, "describe stack", "DescribeStacks", url.Values{fieldStack: {stack}}, &out)
	switch {
	case isMissing(err):
		return nil, nil //nolint:nilnil // documented
	case err != nil:
		return nil, err
	case len(out.Stacks) == 0:
		return nil, nil //nolint:nilnil // documented
	}
	found := out.Stacks[0]
	s := &Stack{
		ID: found.StackID, Name: found.StackName, Status: found.Status,
		Parameters: map[string]string{}, Outputs: map[string]string{},
	}
	for _, p := range found.Parameters {
		s.Parameters[p.ParameterKey] = p.ParameterValue
	}
	for _, o := range found.Outputs {
		s.Outputs[o.OutputKey] = o.OutputValue
	}
	return s, nil
}

// CreateChangeSet implements StackAPI.
func (c *cloudFormation) CreateChangeSet(ctx context.Context, r *ChangeSetRequest) error {
	values := url.Values{
		fieldStack: {r.Stack}, fieldChangeSet: {r.Name}, "TemplateURL": {r.TemplateURL}, "ClientToken": {r.Token},
		"ChangeSetType": {"UPDATE"}, "Capabilities.member.1": {"CAPABILITY_IAM"},
		"Description": {"perdure deploy"},
	}
	if r.Create {
		values.Set("ChangeSetType", "CREATE")
	}
	n := 0
	parameter := func(name, field, value string) {
		n++
		member := "Parameters.member." + strconv.Itoa(n) + "."
		values.Set(member+"ParameterKey", name)
		values.Set(member+field, value)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Parameters)) {
		parameter(name, "ParameterValue", r.Parameters[name])
	}
	for _, name := range r.Kept {
		parameter(name, "UsePreviousValue", "true")
	}
	for i, key := range slices.Sorted(maps.Keys(r.Tags)) {
		member := "Tags.member." + strconv.Itoa(i+1) + "."
		values.Set(member+"Key", key)
		values.Set(member+"Value", r.Tags[key])
	}
	return c.do(ctx, "create change set", "CreateChangeSet", values, nil)
}

// DescribeChangeSet implements StackAPI.
func (c *cloudFormation) DescribeChangeSet(ctx context.Context, stack, name string) (*ChangeSet, error) {
	var all *ChangeSet
	for token := ""; ; {
		var out struct {
			Status    string   `xml:"DescribeChangeSetResult>Status"`
			Reason    string   `xml:"DescribeChangeSetResult>StatusReason"`
			Changes   []Change `xml:"DescribeChangeSetResult>Changes>member>ResourceChange"`
			NextToken string   `xml:"DescribeChangeSetResult>NextToken"`
		}
		values := url.Values{fieldStack: {stack}, fieldChangeSet: {name}}
		if token != "" {
			values.Set(fieldNextToken, token)
		}
		if err := c.do(ctx, "describe change set", "DescribeChangeSet", values, &out); err != nil {
			return nil, err
		}
		if all == nil {
			all = &ChangeSet{Status: out.Status, Reason: out.Reason}
		}
		all.Changes = append(all.Changes, out.Changes...)
		if token = out.NextToken; token == "" {
			return all, nil
		}
	}
}

// DeleteChangeSet implements StackAPI.
func (c *cloudFormation) DeleteChangeSet(ctx context.Context, stack, name string) error {
	err := c.do(ctx, "delete change set", "DeleteChangeSet",
		url.Values{fieldStack: {stack}, fieldChangeSet: {name}}, nil)
	if isMissing(err) || hasCode(err, codeNoChangeSet) {
		return nil
	}
	return err
}

// ExecuteChangeSet implements StackAPI.
func (c *cloudFormation) ExecuteChangeSet(ctx context.Context, stack, name, token string) error {
	return c.do(ctx, "execute change set", "ExecuteChangeSet",
		url.Values{fieldStack: {stack}, fieldChangeSet: {name}, "ClientRequestToken": {token}}, nil)
}

// StackEvents implements StackAPI.
func (c *cloudFormation) StackEvents(
	ctx context.Context, stack string, stop func(e *Event) bool,
) (events []Event, err error) {
	for token := ""; ; {
		var out struct {
			Events    []Event `xml:"DescribeStackEventsResult>StackEvents>member"`
			NextToken string  `xml:"DescribeStackEventsResult>NextToken"`
		}
		values := url.Values{fieldStack: {stack}}
		if token != "" {
			values.Set(fieldNextToken, token)
		}
		if err := c.do(ctx, "read stack events", "DescribeStackEvents", values, &out); err != nil {
			return nil, err
		}
		for i := range out.Events {
			if stop(&out.Events[i]) {
				return events, nil
			}
			events = append(events, out.Events[i])
		}
		if token = out.NextToken; token == "" {
			return events, nil
		}
	}
}

// endpointOf returns the endpoint of a service: the given one of an emulator, or that of the region.
func endpointOf(service, region, given string) string {
	return strings.TrimSuffix(cmp.Or(given, "https://"+service+"."+region+"."+dnsSuffix(region)), "/")
}
