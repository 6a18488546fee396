package cdk_test

import (
	"slices"
	"strings"
	"testing"
)

func TestAPIAsksForIAM(t *testing.T) {
	t.Parallel()
	parsed := parse(t)
	var keys []string
	for _, route := range parsed.ofType("AWS::ApiGatewayV2::Route") {
		keys = append(keys, route.text("RouteKey"))
		if auth := route.text("AuthorizationType"); auth != "AWS_IAM" {
			t.Errorf("route %s is authorised by %q", route.text("RouteKey"), auth)
		}
	}
	slices.Sort(keys)
	if want := []string{"ANY /v1/{proxy+}"}; !slices.Equal(keys, want) {
		t.Errorf("the routes are %v, want %v", keys, want)
	}
	url := parsed.find(t, "AWS::Lambda::Url", "TaskHub")
	if auth := url.text("AuthType"); auth != "AWS_IAM" {
		t.Errorf("the function URL is authorised by %q", auth)
	}
}

func TestAPIKindsExcludeEachOther(t *testing.T) {
	t.Parallel()
	parsed := parse(t)
	conditions := map[string]string{"AWS::Lambda::Url": "IsFunctionUrl"}
	for _, kind := range []string{"Api", "Stage", "Route", "Integration"} {
		conditions["AWS::ApiGatewayV2::"+kind] = "IsHttpApi"
	}
	for kind, condition := range conditions {
		all := parsed.ofType(kind)
		if len(all) == 0 {
			t.Errorf("the template has no %s", kind)
		}
		for _, r := range all {
			if !strings.Contains(r.condition, condition) {
				t.Errorf("%s is there on condition %q, want %s", r.id, r.condition, condition)
			}
		}
	}
}

func TestIntegrationsUsePayloadFormat2(t *testing.T) {
	t.Parallel()
	for _, integration := range parse(t).ofType("AWS::ApiGatewayV2::Integration") {
		if version := integration.text("PayloadFormatVersion"); version != "2.0" {
			t.Errorf("%s: payload format %q", integration.id, version)
		}
	}
}

func TestAPIMayBeInvokedByItsOwnGatewayOnly(t *testing.T) {
	t.Parallel()
	for _, permission := range parse(t).ofType("AWS::Lambda::Permission") {
		if permission.get("SourceArn") == nil {
			t.Errorf("%s lets %s of any account invoke the function", permission.id, permission.text("Principal"))
		}
	}
}
