package cdk_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"

	"github.com/perdure/perdure/infra/cdk"
)

const bucketType = "AWS::S3::Bucket"

// Without LargePayloads the stack has no bucket, and no role has permissions for S3.
func TestLargePayloadsProp_notSet_createsNoBucket(t *testing.T) {
	t.Parallel()
	parsed := custom(t, cdk.TaskHubProps{HubName: "orders", FunctionsDir: placeholders},
		func(awscdk.Stack, *cdk.TaskHub) {})
	if n := len(parsed.ofType(bucketType)); n != 0 {
		t.Errorf("%d buckets", n)
	}
	for _, role := range roles(t, parsed) {
		for action := range actionsOf(statementsOf(role)) {
			if strings.HasPrefix(action, "s3:") {
				t.Errorf("%s may %s", role.id, action)
			}
		}
	}
}

// Only the hub can access the bucket. Objects of messages expire after 60 days, and no other objects expire.
func TestLargePayloadsProp_createsPrivateBucketWithExpiry(t *testing.T) {
	t.Parallel()
	got := custom(t, cdk.TaskHubProps{HubName: "orders", FunctionsDir: placeholders, LargePayloads: true},
		func(_ awscdk.Stack, hub *cdk.TaskHub) {
			if hub.Payloads == nil {
				t.Error("the hub does not export its bucket")
			}
		})
	bucket := got.find(t, bucketType, "TaskHubPayloads")
	for _, closed := range []string{
		"BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets",
	} {
		if bucket.get("PublicAccessBlockConfiguration", closed) != true {
			t.Errorf("%s is %v", closed, bucket.get("PublicAccessBlockConfiguration", closed))
		}
	}
	if bucket.get("BucketEncryption") == nil || bucket.get("VersioningConfiguration") != nil ||
		bucket.deletionPolicy != "Retain" {
		t.Errorf("encryption %v, versions %v, deletion policy %q", bucket.get("BucketEncryption"),
			bucket.get("VersioningConfiguration"), bucket.deletionPolicy)
	}
	rules, _ := bucket.get("LifecycleConfiguration", "Rules").([]any)
	if len(rules) != 1 {
		t.Fatalf("rules %v", rules)
	}
	if rule, _ := rules[0].(map[string]any); rule["Prefix"] != "orders/m/" || rule["ExpirationInDays"] != 60.0 ||
		rule["Status"] != "Enabled" {
		t.Errorf("rule %v", rule)
	}

	for prefix, want := range map[string]string{
		"TaskHubOrchestrator":  "GetObject ListBucket PutObject",
		"TaskHubWorkerdefault": "GetObject ListBucket PutObject",
		"TaskHubRenewer":       "DeleteObject ListBucket",
		"TaskHubApi":           "DeleteObject GetObject ListBucket PutObject",
	} {
		var may []string
		for action := range actionsOf(statementsOf(got.find(t, "AWS::IAM::Role", prefix+"Role"))) {
			if name, ok := strings.CutPrefix(action, "s3:"); ok {
				may = append(may, name)
			}
		}
		slices.Sort(may)
		if all := strings.Join(may, " "); all != want {
			t.Errorf("%s may %q, want %q", prefix, all, want)
		}
		if reported := got.find(t, "AWS::Lambda::Function", prefix).get("Environment",
			"Variables").(map[string]any)["PERDURE_PAYLOAD_BUCKET"]; refOf(reported) != bucket.id {
			t.Errorf("%s has the bucket %v", prefix, reported)
		}
	}
}
