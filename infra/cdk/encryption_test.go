package cdk_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk"
)

// securityPage has the table of encrypted resources.
const securityPage = "../../docs/operate/security.md"

// encryptedTypes maps the rows of the page's table to the types of resources, and to the property that refers to a
// customer-managed key.
var encryptedTypes = map[string]struct {
	kind     string
	property []string
	always   string // the property that encrypts without a key
}{
	"table":                 {"AWS::DynamoDB::Table", []string{"SSESpecification", "KMSMasterKeyId"}, ""},
	"queues":                {"AWS::SQS::Queue", []string{"KmsMasterKeyId"}, "SqsManagedSseEnabled"},
	"payload store":         {"AWS::S3::Bucket", []string{"BucketEncryption"}, "BucketEncryption"},
	"logs":                  {"AWS::Logs::LogGroup", []string{"KmsKeyId"}, ""},
	"environment variables": {"AWS::Lambda::Function", []string{"KmsKeyArn"}, ""},
	"long timers":           {"AWS::Scheduler::Schedule", nil, ""},
	"SSM parameter":         {"AWS::SSM::Parameter", nil, ""},
}

// notEncrypted are types of the template that store no data of a hub.
var notEncrypted = []string{
	"AWS::ApiGatewayV2::", "AWS::CloudWatch::", "AWS::Events::", "AWS::IAM::", "AWS::Lambda::", "AWS::Scheduler::",
	"AWS::SQS::QueuePolicy", "AWS::S3::BucketPolicy", "AWS::KMS::Key",
}

// Each resource that stores data has a row, and each row is what the template sets without and with an EncryptionKey.
func TestEncryption_tableOfThePage_matchesTemplate(t *testing.T) {
	t.Parallel()
	rows := encryptionRows(t)
	key := given(func(stack awscdk.Stack) awskms.IKey {
		return awskms.Key_FromKeyArn(stack, jsii.String("Key"), jsii.String(keyARN))
	})
	for _, own := range []awskms.IKey{nil, key} {
		parsed := custom(t, cdk.TaskHubProps{
			HubName: "orders", FunctionsDir: placeholders, LargePayloads: true,
			HTTPAPI: cdk.HTTPAPIProps{AccessLogs: true}, PlatformProps: cdk.PlatformProps{EncryptionKey: own},
		}, func(awscdk.Stack, *cdk.TaskHub) {})
		for row, c := range encryptedTypes {
			found := parsed.ofType(c.kind)
			if len(found) == 0 && row != "long timers" {
				t.Errorf("%s: the template has no %s", row, c.kind)
			}
			for _, r := range found {
				set := strings.Contains(encoded(t, r.properties), keyARN) // also in the encryption of a bucket
				if len(c.property) > 0 {
					set = strings.Contains(encoded(t, r.get(c.property...)), keyARN)
				}
				if want := own != nil && rows[row]; set != want {
					t.Errorf("%s: %s uses the key: %v, want %v", row, r.id, set, want)
				}
				if c.always != "" && own == nil && r.get(c.always) == nil {
					t.Errorf("%s is not encrypted", r.id)
				}
			}
		}
		for id, r := range parsed.Resources {
			if !isListed(r.Type) {
				t.Errorf("%s: the page has no row for %s", id, r.Type)
			}
		}
		wantTLS(t, parsed)
	}
}

func isListed(kind string) bool {
	for _, c := range encryptedTypes {
		if c.kind == kind {
			return true
		}
	}
	for _, prefix := range notEncrypted {
		if strings.HasPrefix(kind, prefix) {
			return true
		}
	}
	return false
}

// wantTLS fails the test unless queues and buckets deny requests without TLS.
func wantTLS(t *testing.T, parsed template) {
	t.Helper()
	for kind, count := range map[string]int{
		"AWS::SQS::QueuePolicy": len(parsed.ofType("AWS::SQS::Queue")),
		"AWS::S3::BucketPolicy": len(parsed.ofType("AWS::S3::Bucket")),
	} {
		found := parsed.ofType(kind)
		if len(found) != count {
			t.Errorf("got %d of %s, want %d", len(found), kind, count)
		}
		for _, r := range found {
			document, _ := r.get("PolicyDocument").(map[string]any)
			statements, _ := document["Statement"].([]any)
			denied := false
			for _, s := range statements {
				one, _ := s.(map[string]any)
				condition, _ := one["Condition"].(map[string]any)
				secure, _ := condition["Bool"].(map[string]any)
				denied = denied || one["Effect"] == "Deny" && secure["aws:SecureTransport"] == "false"
			}
			if !denied {
				t.Errorf("%s allows requests without TLS", r.id)
			}
		}
	}
}

// encryptionRows reads the table below the heading "Encryption". A row is true if an EncryptionKey encrypts the data.
func encryptionRows(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile(securityPage)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Encryption\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string]bool{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | ")
		if len(cells) == 3 && cells[0] != "data" && !strings.HasPrefix(cells[0], "-") {
			rows[cells[0]] = strings.HasPrefix(cells[2], "`EncryptionKey`")
		}
	}
	if got, want := slices.Sorted(maps.Keys(rows)), slices.Sorted(maps.Keys(encryptedTypes)); !slices.Equal(got, want) {
		t.Fatalf("the page has the rows %v, want %v", got, want)
	}
	return rows
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
