package deployment

import (
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/perdure/perdure/internal/awsrequest"
)

// Stack is a CloudFormation stack.
type Stack struct {
	ID, Name, Status          string
	Parameters, Outputs, Tags map[string]string
}

// Resource is a resource of a stack.
type Resource struct {
	ID       string `xml:"LogicalResourceId"`
	Physical string `xml:"PhysicalResourceId"`
	Type     string `xml:"ResourceType"`
	Status   string `xml:"ResourceStatus"`
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
	ID, Status, Reason string
	Changes            []Change
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

// StackAPI is the part of CloudFormation that deployments and removals need.
type StackAPI interface {
	// DescribeStack returns a stack, or nil if it does not exist. stack is a name or an ID. A stack that was deleted is
	// found by its ID.
	DescribeStack(ctx context.Context, stack string) (*Stack, error)
	// ListStacks returns all stacks that were not deleted.
	ListStacks(ctx context.Context) ([]Stack, error)
	StackResources(ctx context.Context, stack string) ([]Resource, error)
	// DeleteStack starts the deletion of a stack. It succeeds if the stack does not exist. The token identifies the
	// request if it is repeated.
	DeleteStack(ctx context.Context, stack, token string) error
	CreateChangeSet(ctx context.Context, r *ChangeSetRequest) error
	DescribeChangeSet(ctx context.Context, stack, name string) (*ChangeSet, error)
	// DeleteChangeSet deletes a change set with a name or an ID. It succeeds if it or the stack does not exist.
	DeleteChangeSet(ctx context.Context, stack, name string) error
	// ExecuteChangeSet starts the changes of a change set with a name or an ID. The token identifies the request if it
	// is repeated.
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
	// codeTokenExists means that an earlier attempt of the request was accepted, because each token is random.
	codeTokenExists = "TokenAlreadyExistsException"
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
	body, err := c.call(ctx, awsrequest.Query(operation, serviceCloudFormation, c.endpoint, values))
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
	ParameterKey, ParameterValue, OutputKey, OutputValue, Key, Value string
}

// describedStack is a stack in a response.
type describedStack struct {
	StackID    string     `xml:"StackId"`
	StackName  string     `xml:"StackName"`
	Status     string     `xml:"StackStatus"`
	Parameters []keyValue `xml:"Parameters>member"`
	Outputs    []keyValue `xml:"Outputs>member"`
	Tags       []keyValue `xml:"Tags>member"`
}

func (d *describedStack) stack() Stack {
	s := Stack{
		ID: d.StackID, Name: d.StackName, Status: d.Status,
		Parameters: map[string]string{}, Outputs: map[string]string{}, Tags: map[string]string{},
	}
	for _, p := range d.Parameters {
		s.Parameters[p.ParameterKey] = p.ParameterValue
	}
	for _, o := range d.Outputs {
		s.Outputs[o.OutputKey] = o.OutputValue
	}
	for _, t := range d.Tags {
		s.Tags[t.Key] = t.Value
	}
	return s
}

// describeStacks returns the stack with a name or an ID, or all stacks if it is empty.
func (c *cloudFormation) describeStacks(ctx context.Context, stack string) (found []Stack, err error) {
	for token := ""; ; {
		var out struct {
			Stacks    []describedStack `xml:"DescribeStacksResult>Stacks>member"`
			NextToken string           `xml:"DescribeStacksResult>NextToken"`
		}
		values := url.Values{}
		if stack != "" {
			values.Set(fieldStack, stack)
		}
		if token != "" {
			values.Set(fieldNextToken, token)
		}
		if err := c.do(ctx, "describe stack", "DescribeStacks", values, &out); err != nil {
			return nil, err
		}
		for i := range out.Stacks {
			found = append(found, out.Stacks[i].stack())
		}
		if token = out.NextToken; token == "" {
			return found, nil
		}
	}
}

// DescribeStack implements StackAPI.
func (c *cloudFormation) DescribeStack(ctx context.Context, stack string) (*Stack, error) {
	found, err := c.describeStacks(ctx, stack)
	switch {
	case isMissing(err):
		return nil, nil //nolint:nilnil // documented
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, nil //nolint:nilnil // documented
	}
	return &found[0], nil
}

// ListStacks implements StackAPI.
func (c *cloudFormation) ListStacks(ctx context.Context) ([]Stack, error) {
	return c.describeStacks(ctx, "")
}

// StackResources implements StackAPI.
func (c *cloudFormation) StackResources(ctx context.Context, stack string) (found []Resource, err error) {
	for token := ""; ; {
		var out struct {
			Resources []Resource `xml:"ListStackResourcesResult>StackResourceSummaries>member"`
			NextToken string     `xml:"ListStackResourcesResult>NextToken"`
		}
		values := url.Values{fieldStack: {stack}}
		if token != "" {
			values.Set(fieldNextToken, token)
		}
		if err := c.do(ctx, "list stack resources", "ListStackResources", values, &out); err != nil {
			return nil, err
		}
		found = append(found, out.Resources...)
		if token = out.NextToken; token == "" {
			return found, nil
		}
	}
}

// DeleteStack implements StackAPI.
func (c *cloudFormation) DeleteStack(ctx context.Context, stack, token string) error {
	err := c.do(ctx, "delete stack", "DeleteStack",
		url.Values{fieldStack: {stack}, "ClientRequestToken": {token}}, nil)
	if isMissing(err) || hasCode(err, codeTokenExists) {
		return nil
	}
	return err
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
			ID        string   `xml:"DescribeChangeSetResult>ChangeSetId"`
			Status    string   `xml:"DescribeChangeSetResult>Status"`
			Reason    string   `xml:"DescribeChangeSetResult>StatusReason"`
			Changes   []Change `xml:"DescribeChangeSetResult>Changes>member>ResourceChange"`
			NextToken string   `xml:"DescribeChangeSetResult>NextToken"`
		}
		values := url.Values{fieldStack: {stack}, fieldChangeSet: {name}}
		if token != "" {
			values.Set(fieldChangeSet, cmp.Or(all.ID, name))
			values.Set(fieldNextToken, token)
		}
		if err := c.do(ctx, "describe change set", "DescribeChangeSet", values, &out); err != nil {
			return nil, err
		}
		if all == nil {
			all = &ChangeSet{ID: out.ID, Status: out.Status, Reason: out.Reason}
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
	err := c.do(ctx, "execute change set", "ExecuteChangeSet",
		url.Values{fieldStack: {stack}, fieldChangeSet: {name}, "ClientRequestToken": {token}}, nil)
	if hasCode(err, codeTokenExists) {
		return nil
	}
	return err
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
