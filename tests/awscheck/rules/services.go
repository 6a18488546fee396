package rules

import (
	"net"
	"regexp"
	"strings"
	"time"

	"github.com/perdure/perdure/tests/awscheck/model"
)

// Limits of EventBridge Scheduler, Lambda, S3 and Systems Manager, from their quotas and API references.
const (
	mostScheduleInput  = 256 << 10
	mostPayload        = 6 << 20
	mostAsyncPayload   = 1 << 20
	mostClientContext  = 3583
	mostObjectKey      = 1024
	mostMetadata       = 2 << 10
	mostObject         = 5 << 30
	mostDeletedObjects = 1000
	mostParameter      = 4 << 10
	mostLargeParameter = 8 << 10
)

var (
	rate       = regexp.MustCompile(`^rate\([1-9][0-9]* (minutes?|hours?|days?)\)$`)
	cron       = regexp.MustCompile(`^cron\(\S+( \S+){5}\)$`)
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
)

func schedule(r *report, in fields) {
	expression := text(in, "ScheduleExpression")
	_, err := time.Parse("at(2006-01-02T15:04:05)", expression)
	if err != nil && !rate.MatchString(expression) && !cron.MatchString(expression) {
		r.addf("ScheduleExpression", "%q is neither at(yyyy-mm-ddThh:mm:ss) nor a rate nor cron", shorten(expression))
	}
	const ofDay, ofWeek = 2, 4
	if cron.MatchString(expression) {
		if parts := strings.Fields(expression); (parts[ofDay] == "?") == (parts[ofWeek] == "?") {
			r.addf("ScheduleExpression", "cron requires ? as either the day of the month or the day of the week")
		}
	}
	window := object(in, "FlexibleTimeWindow")
	if flexible := text(window, "Mode") == "FLEXIBLE"; flexible != (window["MaximumWindowInMinutes"] != nil) {
		r.addf("FlexibleTimeWindow", "MaximumWindowInMinutes is required for FLEXIBLE, and excluded for OFF")
	}
	target := object(in, "Target")
	if size := len(text(target, "Input")); size > mostScheduleInput {
		r.addf("Target.Input", "the input has %d bytes, want at most %d", size, mostScheduleInput)
	}
	arn := text(target, "Arn")
	if !strings.Contains(arn, ":sqs:") {
		return
	}
	group := text(object(target, "SqsParameters"), "MessageGroupId")
	if fifo := strings.HasSuffix(arn, ".fifo"); fifo != (group != "") {
		r.addf("Target.SqsParameters", "a group is required for FIFO queues, and excluded for others")
	}
	if text(target, "Input") == "" {
		r.addf("Target.Input", "a message of a queue has no body")
	}
	if dead := text(object(target, "DeadLetterConfig"), "Arn"); strings.HasSuffix(dead, ".fifo") {
		r.addf("Target.DeadLetterConfig", "the dead-letter queue is a FIFO queue")
	}
}

func invoke(r *report, in fields) {
	most := int64(mostPayload)
	if text(in, "InvocationType") == "Event" {
		most = mostAsyncPayload
	}
	if size, _ := in["Payload"].(model.Stream); int64(size) > most {
		r.addf("Payload", "the payload has %d bytes, want at most %d", size, most)
	}
	if n := len(text(in, "ClientContext")); n > mostClientContext {
		r.addf("ClientContext", "the context has %d bytes, want at most %d", n, mostClientContext)
	}
}

func putParameter(r *report, in fields) {
	most := mostParameter
	if tier := text(in, "Tier"); tier == "Advanced" || tier == "Intelligent-Tiering" {
		most = mostLargeParameter
	}
	if n := len(text(in, "Value")); n > most {
		r.addf("Value", "the parameter has %d bytes, want at most %d", n, most)
	}
}

func checkBucket(r *report, in fields) {
	name := text(in, "Bucket")
	if !bucketName.MatchString(name) || strings.Contains(name, "..") || net.ParseIP(name) != nil {
		r.addf("Bucket", "%q is not a name of a bucket", shorten(name))
	}
}

func checkObject(r *report, in fields) {
	checkBucket(r, in)
	if n := len(text(in, "Key")); n > mostObjectKey {
		r.addf("Key", "the key has %d bytes, want at most %d", n, mostObjectKey)
	}
	if size, _ := in["Body"].(model.Stream); int64(size) > mostObject {
		r.addf("Body", "the object has %d bytes, want at most %d", size, mostObject)
	}
	size := 0
	metadata := object(in, "Metadata")
	for name := range metadata {
		size += len(name) + len(text(metadata, name))
	}
	if size > mostMetadata {
		r.addf("Metadata", "the metadata has %d bytes, want at most %d", size, mostMetadata)
	}
	source, ok := in["CopySource"].(string)
	if !ok {
		return
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(source, "/"), "/")
	if bucket == "" || key == "" {
		r.addf("CopySource", "%q is not a bucket and a key", shorten(source))
	}
}

func deleteObjects(r *report, in fields) {
	checkBucket(r, in)
	all := objects(object(in, "Delete"), "Objects")
	if len(all) < 1 || len(all) > mostDeletedObjects {
		r.addf("Delete.Objects", "the request has %d objects, want 1 to %d", len(all), mostDeletedObjects)
	}
	checksum := in["ContentMD5"] != nil
	for name := range in {
		checksum = checksum || strings.HasPrefix(name, "Checksum") && name != "ChecksumAlgorithm"
	}
	if !checksum {
		r.addf("Delete", "the request has no checksum")
	}
}
