package iam

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

func bucketARN(bucket string) string { return "arn:aws:s3:::" + bucket }

// Actions of several operations.
const (
	getObject  = "s3:GetObject"
	putObject  = "s3:PutObject"
	listBucket = "s3:ListBucket"

	deleteObject = "s3:DeleteObject"
)

// objectActions are the actions of operations on an object.
var objectActions = map[string]string{
	"GetObject": getObject, "HeadObject": getObject, "PutObject": putObject,
	"DeleteObject": deleteObject, "CreateMultipartUpload": putObject, "UploadPart": putObject,
	"CompleteMultipartUpload": putObject, "AbortMultipartUpload": "s3:AbortMultipartUpload",
}

// ofVersion returns the action for an object, or for its version if the request names one.
func ofVersion(action, version string) string {
	if version != "" && (action == getObject || action == deleteObject) {
		return action + "Version"
	}
	return action
}

// bucketActions are the actions of operations on a bucket.
var bucketActions = map[string]string{
	"ListObjectsV2": listBucket, "ListObjects": listBucket, "HeadBucket": listBucket,
	"CreateBucket": "s3:CreateBucket", "DeleteBucket": "s3:DeleteBucket",
	"GetBucketLifecycleConfiguration": "s3:GetLifecycleConfiguration",
	"GetBucketVersioning":             "s3:GetBucketVersioning",
}

func s3(c *call) ([]Request, error) {
	bucket, key := c.text("Bucket"), c.text("Key")
	stored := bucketARN(bucket) + "/" + key
	switch c.name {
	case "ListBuckets":
		return one("s3:ListAllMyBuckets", everything)
	case "CopyObject":
		escaped, version, _ := strings.Cut(strings.TrimPrefix(c.text("CopySource"), "/"), "?versionId=")
		source, err := url.PathUnescape(escaped)
		if err != nil {
			return nil, fmt.Errorf("CopySource: %w", err)
		}
		return []Request{
			{Action: ofVersion(getObject, version), Resource: bucketARN(source)}, {Action: putObject, Resource: stored},
		}, nil
	case "DeleteObjects":
		var all []Request
		for _, o := range objects(object(c.in, "Delete"), "Objects") {
			all = append(all, Request{
				Action:   ofVersion(deleteObject, text(o, "VersionId")),
				Resource: bucketARN(bucket) + "/" + text(o, "Key"),
			})
		}
		return all, nil
	}
	if action, ok := objectActions[c.name]; ok {
		return one(ofVersion(action, c.text("VersionId")), stored)
	}
	action, ok := bucketActions[c.name]
	if !ok {
		return nil, errors.New("the action is unknown")
	}
	r := Request{Action: action, Resource: bucketARN(bucket), Context: map[string][]string{}}
	if action == listBucket {
		if prefix, ok := c.in["Prefix"].(string); ok {
			r.Context["s3:prefix"] = []string{prefix}
		}
		if most, ok := c.in["MaxKeys"].(json.Number); ok {
			r.Context["s3:max-keys"] = []string{most.String()}
		}
	}
	return []Request{r}, nil
}

// Missing returns the permission that a request for a missing object needs in addition. Without it, S3 responds with
// status 403 instead of 404.
func Missing(operation string, input map[string]any) (Request, bool) {
	if objectActions[operation] != getObject {
		return Request{}, false
	}
	return Request{Action: listBucket, Resource: bucketARN(text(input, "Bucket"))}, true
}

func ssm(c *call) ([]Request, error) {
	action := "ssm:" + c.name
	if names, ok := c.in["Names"].([]any); ok {
		var all []Request
		for _, name := range names {
			all = append(all, Request{Action: action, Resource: c.parameter(fmt.Sprint(name))})
		}
		return all, nil
	}
	name := c.text("Name")
	if c.name == "GetParametersByPath" {
		name = c.text("Path")
	}
	if name == "" {
		return one(action, everything)
	}
	return one(action, c.parameter(name))
}

func (c *call) parameter(name string) string {
	return c.arn("ssm", "parameter/", strings.TrimPrefix(name, "/"))
}

func kms(c *call) ([]Request, error) {
	action := "kms:" + c.name
	key := c.text("KeyId")
	switch {
	case c.name == "ListKeys" || c.name == "ListAliases" || c.name == "CreateKey":
		return one(action, everything)
	case key == "":
		return nil, errors.New("the request does not name its key")
	case !strings.HasPrefix(key, "alias/"):
		key = c.arn("kms", "key/", key)
	default:
		key = c.arn("kms", "", key)
	}
	r := Request{Action: action, Resource: key, Context: map[string][]string{}}
	encryption := object(c.in, "EncryptionContext")
	for name := range encryption {
		r.Context["kms:encryptioncontext:"+strings.ToLower(name)] = []string{text(encryption, name)}
		r.Context["kms:encryptioncontextkeys"] = append(r.Context["kms:encryptioncontextkeys"], name)
	}
	return []Request{r}, nil
}

func events(c *call) ([]Request, error) {
	name := c.text("Name")
	if name == "" {
		name = c.text("Rule")
	}
	if name == "" {
		return one("events:"+c.name, everything)
	}
	if bus := c.text("EventBusName"); bus != "" && bus != "default" {
		name = bus + "/" + name
	}
	return one("events:"+c.name, c.arn("events", "rule/", name))
}

func roles(c *call) ([]Request, error) {
	resource := everything
	if name := c.text("RoleName"); name != "" {
		resource = fmt.Sprintf("arn:aws:iam::%s:role/%s", c.Account, name)
	}
	return one("iam:"+c.name, resource)
}
