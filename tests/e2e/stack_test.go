package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/iam"
)

// deployedStack has the physical IDs of the deployed resources.
type deployedStack struct {
	account, region string
	resources       []stackResource
}

type stackResource struct {
	Logical  string `xml:"LogicalResourceId"`
	Physical string `xml:"PhysicalResourceId"`
	Type     string `xml:"ResourceType"`
}

// describeStack reads the resources of the stack from CloudFormation.
func describeStack(t *testing.T) *deployedStack {
	t.Helper()
	cfg, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	who, err := cfg.Credentials.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	body := url.Values{
		"Action": {"DescribeStackResources"}, "Version": {"2010-05-15"}, "StackName": {"perdure-e2e"},
	}.Encode()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, os.Getenv("AWS_ENDPOINT_URL"),
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	sum := sha256.Sum256([]byte(body))
	if err := v4.NewSigner().SignHTTP(t.Context(), who, r, hex.EncodeToString(sum[:]), "cloudformation", cfg.Region,
		time.Now()); err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var found struct {
		Resources []stackResource `xml:"DescribeStackResourcesResult>StackResources>member"`
	}
	if err := xml.NewDecoder(answer.Body).Decode(&found); err != nil || len(found.Resources) == 0 {
		t.Fatalf("got HTTP %d, resources %v, error %v", answer.StatusCode, found.Resources, err)
	}
	return &deployedStack{accountOf(t, cfg), cfg.Region, found.Resources}
}

func (s *deployedStack) find(t *testing.T, logical string) stackResource {
	t.Helper()
	i := slices.IndexFunc(s.resources, func(r stackResource) bool { return strings.HasPrefix(r.Logical, logical) })
	if i < 0 {
		t.Fatalf("the stack has no resource %s", logical)
	}
	return s.resources[i]
}

// physical returns the physical ID of a resource, given its logical ID or the beginning of it.
func (s *deployedStack) physical(t *testing.T, logical string) string {
	t.Helper()
	return s.find(t, logical).Physical
}

// arn returns the ARN of a resource.
func (s *deployedStack) arn(t *testing.T, logical string) string {
	t.Helper()
	r := s.find(t, logical)
	place := ":" + s.region + ":" + s.account + ":"
	name := r.Physical[strings.LastIndex(r.Physical, "/")+1:] // of a queue, whose ID is its URL
	prefix := map[string]string{
		"AWS::DynamoDB::Table": "dynamodb" + place + "table/", "AWS::SQS::Queue": "sqs" + place,
		"AWS::Lambda::Function": "lambda" + place + "function:", "AWS::IAM::Role": "iam::" + s.account + ":role/",
		"AWS::S3::Bucket": "s3:::", "AWS::Events::Rule": "events" + place + "rule/",
		"AWS::Scheduler::ScheduleGroup": "scheduler" + place + "schedule-group/",
	}[r.Type]
	if prefix == "" {
		t.Fatalf("the ARN of %s is unknown", r.Type)
	}
	return "arn:aws:" + prefix + name
}

// readGrants reads the policies of the grants of the construct.
func readGrants(t *testing.T) (policies map[string]any) {
	t.Helper()
	text, err := os.ReadFile("../../infra/cdk/testdata/grants.golden.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &policies); err != nil {
		t.Fatal(err)
	}
	return policies
}

// ofGrant returns the policy of a grant of the construct, with the resources of the stack.
func ofGrant(name string) func(*testing.T, *deployedStack) string {
	return func(t *testing.T, s *deployedStack) string {
		t.Helper()
		policy, err := json.Marshal(s.resolve(t, readGrants(t)[name]))
		if err != nil {
			t.Fatal(err)
		}
		return string(policy)
	}
}

// resolve replaces the intrinsic functions of CloudFormation.
func (s *deployedStack) resolve(t *testing.T, v any) any {
	t.Helper()
	switch v := v.(type) {
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = s.resolve(t, v[i])
		}
		return all
	case map[string]any:
		if logical, ok := v["Ref"].(string); ok {
			pseudo := map[string]string{
				"AWS::Partition": "aws", "AWS::Region": s.region, "AWS::AccountId": s.account,
			}[logical]
			if pseudo != "" {
				return pseudo
			}
			return s.physical(t, logical)
		}
		if of, ok := v["Fn::GetAtt"].([]any); ok {
			logical, _ := of[0].(string)
			return s.arn(t, logical)
		}
		if of, ok := v["Fn::Join"].([]any); ok {
			separator, _ := of[0].(string)
			parts, _ := s.resolve(t, of[1]).([]any)
			texts := make([]string, len(parts))
			for i := range parts {
				texts[i], _ = parts[i].(string)
			}
			return strings.Join(texts, separator)
		}
		if of, ok := v["Fn::If"].([]any); ok { // the hub has an HTTP API, as the policies assume
			return s.resolve(t, of[1])
		}
		all := map[string]any{}
		for name := range v {
			all[name] = s.resolve(t, v[name])
		}
		return all
	default:
		return v
	}
}

// ofRole returns the policy of a role of the stack.
func ofRole(logical string) func(*testing.T, *deployedStack) string {
	return func(t *testing.T, s *deployedStack) string {
		t.Helper()
		cfg, err := config.LoadDefaultConfig(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		roles, name := iam.NewFromConfig(cfg), s.physical(t, logical)
		names, err := roles.ListRolePolicies(t.Context(), &iam.ListRolePoliciesInput{RoleName: &name})
		if err != nil || len(names.PolicyNames) != 1 {
			t.Fatalf("role %s: got policies %+v, error %v", name, names, err)
		}
		policy, err := roles.GetRolePolicy(t.Context(),
			&iam.GetRolePolicyInput{RoleName: &name, PolicyName: &names.PolicyNames[0]})
		if err != nil {
			t.Fatal(err)
		}
		text, err := url.QueryUnescape(*policy.PolicyDocument)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
}
