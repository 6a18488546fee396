package awscheck

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	awsiam "github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/tests/awscheck/iam"
	"github.com/perdure/perdure/tests/awscheck/rules"
)

// directory reads the deployed resources from the emulator: callers, policies of roles, and keys of tables.
type directory struct {
	endpoint string
	callers  map[string]*identity
	tables   map[string]*rules.Table
	// roles has the policies of roles. A role is read again when it lacks a permission, because an update of the stack
	// may have changed it.
	roles map[string]*iam.Principal
	// resources has the policies of queues and buckets by their names in ARNs.
	resources map[string][]iam.Policy
}

func newDirectory(endpoint string) *directory {
	return &directory{
		endpoint: endpoint, callers: map[string]*identity{}, tables: map[string]*rules.Table{},
		roles: map[string]*iam.Principal{}, resources: map[string][]iam.Policy{},
	}
}

// config returns the configuration of the account's root user, who reads the resources.
func (d *directory) config() aws.Config {
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: &d.endpoint,
		Credentials: credentials.NewStaticCredentialsProvider(root, root, ""),
	}
}

// root is the access key of the account's root user, and its secret. The emulator also accepts the number of an account
// as the access key of its root user.
const root = "test"

var accountNumber = regexp.MustCompile(`^[0-9]{12}$`)

// identity is the caller of a request.
type identity struct {
	account  string
	role     string // empty for the root user
	function string // that assumes the role
	err      error
}

func (i *identity) name() string {
	if i.function != "" {
		return i.function
	}
	return "root"
}

// caller returns the identity of an access key. A caller with an error is looked up again for the next request.
func (d *directory) caller(ctx context.Context, accessKey string) *identity {
	if accessKey == root || accountNumber.MatchString(accessKey) {
		return &identity{}
	}
	if found, ok := d.callers[accessKey]; ok {
		return found
	}
	pages := lambda.NewListFunctionsPaginator(lambda.NewFromConfig(d.config()), &lambda.ListFunctionsInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return &identity{err: fmt.Errorf("list functions: %w", err)}
		}
		for i := range page.Functions {
			d.add(aws.ToString(page.Functions[i].FunctionArn), aws.ToString(page.Functions[i].Role))
		}
	}
	if found, ok := d.callers[accessKey]; ok {
		return found
	}
	return &identity{err: fmt.Errorf("no function has the access key %s", accessKey)}
}

// add adds the caller of a function. The emulator derives the access key of the role's session from both ARNs.
func (d *directory) add(function, role string) {
	const digits = 16
	digest := sha256.Sum256([]byte(function + ":" + role))
	accessKey := "ASIA" + strings.ToUpper(hex.EncodeToString(digest[:])[:digits])
	parts := strings.Split(function, ":")
	d.callers[accessKey] = &identity{
		account: parts[len(parts)-3], function: parts[len(parts)-1], role: role[strings.LastIndex(role, "/")+1:],
	}
}

// table returns the keys of a table, or nil if the table does not exist.
func (d *directory) table(ctx context.Context, region, name string) *rules.Table {
	if found, ok := d.tables[name]; ok {
		return found
	}
	cfg := d.config()
	cfg.Region = region
	out, err := dynamodb.NewFromConfig(cfg).DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	if err != nil {
		return nil
	}
	types := map[string]string{}
	for _, a := range out.Table.AttributeDefinitions {
		types[aws.ToString(a.AttributeName)] = string(a.AttributeType)
	}
	t := &rules.Table{Keys: keys(out.Table.KeySchema, types), Indexes: map[string]rules.Keys{}}
	for _, index := range out.Table.GlobalSecondaryIndexes {
		t.Indexes[aws.ToString(index.IndexName)] = keys(index.KeySchema, types)
	}
	d.tables[name] = t
	return t
}

func keys(schema []ddbtypes.KeySchemaElement, types map[string]string) rules.Keys {
	k := rules.Keys{Types: types}
	for _, e := range schema {
		if e.KeyType == ddbtypes.KeyTypeHash {
			k.Partition = aws.ToString(e.AttributeName)
		} else {
			k.Sort = aws.ToString(e.AttributeName)
		}
	}
	return k
}

// evaluate decides whether a role may send a request.
func (d *directory) evaluate(ctx context.Context, caller *identity, r *iam.Request) (iam.Decision, error) {
	resource, err := d.policiesOf(ctx, r.Resource)
	if err != nil {
		return iam.NotAllowed, err
	}
	if known, ok := d.roles[caller.role]; ok {
		if known.Resource = resource; known.Evaluate(r) == iam.Allowed {
			return iam.Allowed, nil
		}
	}
	found, err := d.policies(ctx, caller.role)
	if err != nil {
		return iam.NotAllowed, err
	}
	d.roles[caller.role], found.Resource = found, resource
	return found.Evaluate(r), nil
}

// policiesOf reads the policy of a queue or a bucket. The stack gives no policy to other resources.
func (d *directory) policiesOf(ctx context.Context, arn string) ([]iam.Policy, error) {
	const parts = 6
	part := strings.SplitN(arn, ":", parts)
	if len(part) != parts || part[2] != "sqs" && part[2] != "s3" {
		return nil, nil
	}
	name, _, _ := strings.Cut(part[parts-1], "/")
	read := d.bucketPolicy
	if part[2] == "sqs" {
		read = d.queuePolicy
		name = part[4] + "/" + name
	}
	if found, ok := d.resources[part[2]+":"+name]; ok {
		return found, nil
	}
	document, err := read(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("policy of %s: %w", arn, err)
	}
	var found []iam.Policy
	if document != "" {
		p, err := iam.Parse(document)
		if err != nil {
			return nil, fmt.Errorf("policy of %s: %w", arn, err)
		}
		found = append(found, p)
	}
	d.resources[part[2]+":"+name] = found
	return found, nil
}

// queuePolicy returns the policy of a queue, whose name starts with its account. It is empty if there is none.
func (d *directory) queuePolicy(ctx context.Context, name string) (string, error) {
	out, err := sqs.NewFromConfig(d.config()).GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl:       aws.String(d.endpoint + "/" + name),
		AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNamePolicy},
	})
	if _, missing := errors.AsType[*sqstypes.QueueDoesNotExist](err); missing {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return out.Attributes[string(sqstypes.QueueAttributeNamePolicy)], nil
}

// bucketPolicy returns the policy of a bucket. It is empty if there is none.
func (d *directory) bucketPolicy(ctx context.Context, name string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.endpoint+"/"+name+"?policy", nil)
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+root+
		"/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=unverified")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return "", err
	case response.StatusCode == http.StatusNotFound:
		return "", nil
	case response.StatusCode != http.StatusOK:
		return "", fmt.Errorf("status %d: %s", response.StatusCode, body)
	default:
		return string(body), nil
	}
}

// policies reads the policies of a role.
func (d *directory) policies(ctx context.Context, role string) (*iam.Principal, error) {
	client := awsiam.NewFromConfig(d.config())
	p := &iam.Principal{}
	inline, err := client.ListRolePolicies(ctx, &awsiam.ListRolePoliciesInput{RoleName: &role})
	if err != nil {
		return nil, fmt.Errorf("list policies of %s: %w", role, err)
	}
	for _, name := range inline.PolicyNames {
		out, err := client.GetRolePolicy(ctx, &awsiam.GetRolePolicyInput{RoleName: &role, PolicyName: &name})
		if err != nil {
			return nil, fmt.Errorf("policy %s of %s: %w", name, role, err)
		}
		if p.Identity, err = parsed(p.Identity, out.PolicyDocument); err != nil {
			return nil, err
		}
	}
	attached, err := client.ListAttachedRolePolicies(ctx, &awsiam.ListAttachedRolePoliciesInput{RoleName: &role})
	if err != nil {
		return nil, fmt.Errorf("list managed policies of %s: %w", role, err)
	}
	for _, a := range attached.AttachedPolicies {
		if p.Identity, err = managed(ctx, client, p.Identity, a.PolicyArn); err != nil {
			return nil, err
		}
	}
	out, err := client.GetRole(ctx, &awsiam.GetRoleInput{RoleName: &role})
	if err != nil {
		return nil, fmt.Errorf("role %s: %w", role, err)
	}
	if b := out.Role.PermissionsBoundary; b != nil {
		p.Boundary, err = managed(ctx, client, []iam.Policy{}, b.PermissionsBoundaryArn)
	}
	return p, err
}

// managed adds the default version of a managed policy.
func managed(ctx context.Context, client *awsiam.Client, to []iam.Policy, arn *string) ([]iam.Policy, error) {
	policy, err := client.GetPolicy(ctx, &awsiam.GetPolicyInput{PolicyArn: arn})
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", aws.ToString(arn), err)
	}
	version, err := client.GetPolicyVersion(ctx, &awsiam.GetPolicyVersionInput{
		PolicyArn: arn, VersionId: policy.Policy.DefaultVersionId,
	})
	if err != nil {
		return nil, fmt.Errorf("version of policy %s: %w", aws.ToString(arn), err)
	}
	return parsed(to, version.PolicyVersion.Document)
}

// parsed adds a policy from its document, which IAM encodes like a part of a URL.
func parsed(to []iam.Policy, encoded *string) ([]iam.Policy, error) {
	if encoded == nil {
		return nil, errors.New("the policy has no document")
	}
	document, err := url.QueryUnescape(*encoded)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	p, err := iam.Parse(document)
	if err != nil {
		return nil, err
	}
	return append(to, p), nil
}
