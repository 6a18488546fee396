package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
)

// grantsTemplate is a synthesized template in which the hub "orders" has a role for each grant.
const grantsTemplate = "../../infra/cdk/testdata/every-prop.golden.json"

// logicalID matches the ID of a resource of a construct: its name without the hub, and a hash.
var logicalID = regexp.MustCompile(`^(?:orders|TaskHub)(.*)[0-9A-F]{8}$`)

// partOf returns the name of a resource within its hub. The hub "orders" has another work queue than the hub of the
// tests.
func partOf(id string) string {
	m := logicalID.FindStringSubmatch(id)
	if m == nil {
		return ""
	}
	return strings.ReplaceAll(m[1], "payments", "default")
}

// resource is a deployed resource.
type resource struct {
	LogicalID  string `xml:"LogicalResourceId"`
	PhysicalID string `xml:"PhysicalResourceId"`
	Type       string `xml:"ResourceType"`
}

// hubResources has the resources of the hub of the tests, by their names within the hub.
type hubResources struct {
	region, account string
	parts           map[string]resource
}

func readHub(t *testing.T, cfg aws.Config, account string) hubResources {
	t.Helper()
	form := url.Values{
		"Action": {"DescribeStackResources"}, "Version": {"2010-05-15"}, "StackName": {"perdure-e2e"},
	}.Encode()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, os.Getenv("AWS_ENDPOINT_URL"),
		strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	who, err := cfg.Credentials.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(form))
	if err := v4.NewSigner().SignHTTP(t.Context(), who, r, hex.EncodeToString(sum[:]), "cloudformation", cfg.Region,
		time.Now()); err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	var stack struct {
		Resources []resource `xml:"DescribeStackResourcesResult>StackResources>member"`
	}
	if err != nil || xml.Unmarshal(body, &stack) != nil || len(stack.Resources) == 0 {
		t.Fatalf("got HTTP %d %s, %v", answer.StatusCode, body, err)
	}
	h := hubResources{region: cfg.Region, account: account, parts: map[string]resource{}}
	for _, r := range stack.Resources {
		h.parts[partOf(r.LogicalID)] = r
	}
	return h
}

// arn returns the ARN of a deployed resource.
func (h *hubResources) arn(t *testing.T, logicalID string) string {
	t.Helper()
	r := h.parts[partOf(logicalID)]
	in := ":" + h.region + ":" + h.account + ":"
	switch r.Type {
	case "AWS::DynamoDB::Table":
		return "arn:aws:dynamodb" + in + "table/" + r.PhysicalID
	case "AWS::SQS::Queue":
		return "arn:aws:sqs" + in + r.PhysicalID[strings.LastIndex(r.PhysicalID, "/")+1:]
	case "AWS::Lambda::Function":
		return "arn:aws:lambda" + in + "function:" + r.PhysicalID
	case "AWS::IAM::Role":
		return "arn:aws:iam::" + h.account + ":role/" + r.PhysicalID
	case "AWS::S3::Bucket":
		return "arn:aws:s3:::" + r.PhysicalID
	case "AWS::Scheduler::ScheduleGroup":
		return "arn:aws:scheduler" + in + "schedule-group/" + r.PhysicalID
	case "AWS::Events::Rule":
		return "arn:aws:events" + in + "rule/" + r.PhysicalID
	case "": // the key of the hub "orders"
		return "arn:aws:kms" + in + "key/none"
	default:
		t.Fatalf("%s has the type %s", logicalID, r.Type)
		return ""
	}
}

// resolve replaces the functions of a template by the values of the deployed hub.
func (h *hubResources) resolve(t *testing.T, v any) any {
	t.Helper()
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = h.resolve(t, v[i])
		}
	case map[string]any:
		if of, ok := v["Fn::GetAtt"].([]any); ok {
			return h.arn(t, of[0].(string))
		}
		if name, ok := v["Ref"].(string); ok {
			values := map[string]string{"AWS::Partition": "aws", "AWS::Region": h.region, "AWS::AccountId": h.account}
			if values[name] == "" {
				return h.parts[partOf(name)].PhysicalID
			}
			return values[name]
		}
		if join, ok := v["Fn::Join"].([]any); ok {
			var text strings.Builder
			for _, part := range join[1].([]any) {
				text.WriteString(h.resolve(t, part).(string))
			}
			return strings.ReplaceAll(text.String(), "/perdure/orders/", "/perdure/e2e/")
		}
		for name := range v {
			v[name] = h.resolve(t, v[name])
		}
	}
	return v
}

// grantOperate returns the policy of GrantOperate for the deployed hub.
func grantOperate(t *testing.T, h *hubResources) string {
	t.Helper()
	b, err := os.ReadFile(grantsTemplate)
	if err != nil {
		t.Fatal(err)
	}
	var template struct {
		Resources map[string]struct {
			Properties map[string]any `json:"Properties"`
		} `json:"Resources"`
	}
	if err := json.Unmarshal(b, &template); err != nil {
		t.Fatal(err)
	}
	for id, r := range template.Resources {
		if strings.HasPrefix(id, "ordersGrantOperateDefaultPolicy") {
			policy, err := json.Marshal(h.resolve(t, r.Properties["PolicyDocument"]))
			if err != nil {
				t.Fatal(err)
			}
			return string(policy)
		}
	}
	t.Fatal("the template has no policy of GrantOperate")
	return ""
}

// The local cloud enforces the policy of GrantOperate, with which the commands for direct access work.
func TestRoles_grantOperate_permitsDirectCommands(t *testing.T) {
	if onLocalStack {
		t.Skip("LocalStack does not enforce IAM")
	}
	root, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := readHub(t, root, accountOf(t, root))
	cfg := assume(t, "operator", grantOperate(t, &h))
	resume := exec.Command(hub.perdure, "resume", "--all", "--hub", "e2e") // no context: it ends before the cleanup
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		if out, err := resume.CombinedOutput(); err != nil { // other tests need the hub
			t.Errorf("resume: %v: %s", err, out)
		}
	})
	for _, args := range directCommands {
		exit, output := as(t, cfg, append(args, "--hub", "e2e")...)
		if exit != 0 && args[0] != "doctor" || strings.Contains(output, "AccessDenied") ||
			strings.Contains(output, "not authorized") {
			t.Errorf("perdure %s: got exit code %d: %s", args[0], exit, output)
		}
	}
}
