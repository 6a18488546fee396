package rules

import (
	"fmt"
	"regexp"
	"strings"
)

// Limits of SQS, from "Amazon SQS message quotas" and the API reference.
const (
	mostMessageBytes    = 1 << 20
	mostDelaySeconds    = 900
	mostVisibility      = 43200
	mostWaitSeconds     = 20
	mostBatchEntries    = 10
	mostAttributes      = 10
	mostAttributeName   = 256
	mostReceiveMessages = 10
	mostEntryID         = 80
	mostMessageID       = 128 // of groups and deduplication
)

var (
	entryID       = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	messageID     = regexp.MustCompile(`^[!-~]+$`)
	attributeName = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)
)

func sendMessage(r *report, in fields) { checkMessage(r, "", in, isFIFO(in)) }

func isMessageID(id string) bool { return len(id) <= mostMessageID && messageID.MatchString(id) }

func isFIFO(in fields) bool { return strings.HasSuffix(text(in, "QueueUrl"), ".fifo") }

// checkMessage checks a message, and returns its size in bytes.
func checkMessage(r *report, path string, in fields, fifo bool) int {
	body := text(in, "MessageBody")
	size := len(body) + checkMessageAttributes(r, join(path, "MessageAttributes"), object(in, "MessageAttributes"))
	if body == "" {
		r.addf(join(path, "MessageBody"), "the body is empty")
	}
	if i := strings.IndexFunc(body, isForbidden); i >= 0 {
		r.addf(join(path, "MessageBody"), "the body has a character at byte %d that SQS rejects", i)
	}
	if size > mostMessageBytes {
		r.addf(join(path, "MessageBody"), "the message has %d bytes, want at most %d", size, mostMessageBytes)
	}
	r.within(in, path, "DelaySeconds", 0, mostDelaySeconds)
	for _, name := range []string{"MessageGroupId", "MessageDeduplicationId"} {
		if id, ok := in[name].(string); ok && !isMessageID(id) {
			r.addf(join(path, name), "%q is not 1 to %d characters from ! to ~", shorten(id), mostMessageID)
		}
	}
	switch {
	case fifo && in["MessageGroupId"] == nil:
		r.addf(join(path, "MessageGroupId"), "a message of a FIFO queue has no group")
	case fifo && in["DelaySeconds"] != nil && fmt.Sprint(in["DelaySeconds"]) != "0":
		r.addf(join(path, "DelaySeconds"), "a message of a FIFO queue has a delay")
	case !fifo && in["MessageDeduplicationId"] != nil:
		r.addf(join(path, "MessageDeduplicationId"), "a message of a standard queue has a deduplication ID")
	}
	return size
}

// isForbidden reports whether a message must not contain a character.
func isForbidden(c rune) bool {
	return c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == '\uFFFE' || c == '\uFFFF'
}

func checkMessageAttributes(r *report, path string, all fields) (size int) {
	if len(all) > mostAttributes {
		r.addf(path, "the message has %d attributes, want at most %d", len(all), mostAttributes)
	}
	for name := range all {
		lower := strings.ToLower(name)
		if len(name) > mostAttributeName || !attributeName.MatchString(name) || strings.HasPrefix(lower, "aws.") ||
			strings.HasPrefix(lower, "amazon.") {
			r.addf(path, "%q is not a name of an attribute", shorten(name))
		}
		size += len(name) + checkAttribute(r, join(path, name), object(all, name))
	}
	return size
}

// checkAttribute checks the type and the value of an attribute, and returns their size in bytes.
func checkAttribute(r *report, path string, value fields) int {
	kind, _, _ := strings.Cut(text(value, "DataType"), ".")
	content := text(value, "StringValue")
	size := len(text(value, "DataType")) + len(content)
	if n := len(text(value, "DataType")); n > mostAttributeName {
		r.addf(path, "the type has %d bytes, want at most %d", n, mostAttributeName)
	}
	if i := strings.IndexFunc(content, isForbidden); i >= 0 {
		r.addf(path, "the value has a character at byte %d that SQS rejects", i)
	}
	switch kind {
	case "String":
	case "Number":
		if _, ok := decimalOf(content); !ok && content != "" {
			r.addf(path, "%q is not a number", shorten(content))
		}
	case "Binary":
		content = text(value, "BinaryValue")
		size += blobBytes(content)
	default:
		r.addf(path, "%q is not a type of an attribute", shorten(kind))
	}
	if content == "" {
		r.addf(path, "the value is empty")
	}
	return size
}

func sendMessageBatch(r *report, in fields) {
	total := 0
	for i, entry := range checkBatch(r, in) {
		total += checkMessage(r, fmt.Sprintf("Entries[%d]", i), entry, isFIFO(in))
	}
	if total > mostMessageBytes {
		r.addf("Entries", "the messages have %d bytes, want at most %d", total, mostMessageBytes)
	}
}

// checkBatch checks the entries of a batch, and returns them.
func checkBatch(r *report, in fields) []fields {
	entries, seen := objects(in, "Entries"), map[string]bool{}
	if len(entries) < 1 || len(entries) > mostBatchEntries {
		r.addf("Entries", "the batch has %d entries, want 1 to %d", len(entries), mostBatchEntries)
	}
	for i, entry := range entries {
		id, path := text(entry, "Id"), fmt.Sprintf("Entries[%d].Id", i)
		if len(id) > mostEntryID || !entryID.MatchString(id) {
			r.addf(path, "%q is not 1 to %d letters, digits, hyphens and underscores", shorten(id), mostEntryID)
		}
		if seen[id] {
			r.addf(path, "another entry has the ID %q", shorten(id))
		}
		seen[id] = true
	}
	return entries
}

func receiveMessage(r *report, in fields) {
	r.within(in, "", "MaxNumberOfMessages", 1, mostReceiveMessages)
	r.within(in, "", "WaitTimeSeconds", 0, mostWaitSeconds)
	r.within(in, "", "VisibilityTimeout", 0, mostVisibility)
	id, ok := in["ReceiveRequestAttemptId"].(string)
	if ok && (!isFIFO(in) || !isMessageID(id)) {
		r.addf("ReceiveRequestAttemptId", "the ID is for FIFO queues, with 1 to %d characters from ! to ~",
			mostMessageID)
	}
}

func changeVisibility(r *report, in fields) {
	r.within(in, "", "VisibilityTimeout", 0, mostVisibility)
	checkReceipt(r, "", in)
}

func changeVisibilityBatch(r *report, in fields) {
	for i, entry := range checkBatch(r, in) {
		path := fmt.Sprintf("Entries[%d]", i)
		if entry["VisibilityTimeout"] == nil {
			r.addf(path, "the entry has no visibility timeout")
		}
		r.within(entry, path, "VisibilityTimeout", 0, mostVisibility)
		checkReceipt(r, path, entry)
	}
}

func deleteMessage(r *report, in fields) { checkReceipt(r, "", in) }

func deleteMessageBatch(r *report, in fields) {
	for i, entry := range checkBatch(r, in) {
		checkReceipt(r, fmt.Sprintf("Entries[%d]", i), entry)
	}
}

func checkReceipt(r *report, path string, in fields) {
	if text(in, "ReceiptHandle") == "" {
		r.addf(join(path, "ReceiptHandle"), "the receipt handle is empty")
	}
}

// mostShown is the number of bytes of a value that a violation shows.
const mostShown = 40

func shorten(s string) string {
	if len(s) <= mostShown {
		return s
	}
	return strings.ToValidUTF8(s[:mostShown], "") + "..."
}
