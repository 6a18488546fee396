// Package sizes calculates whether the names of a hub fit the environment of a function and the parameter with the
// hub's configuration. Otherwise, a deployment would fail when CloudFormation creates the orchestrator or the
// parameter.
package sizes

import "fmt"

// Limits of a function's environment and of the hub's configuration in bytes, and the maximum lengths of values that
// are references in the template.
const (
	mostEnvironment = 4096
	mostConfig      = 4096 // a standard parameter of Systems Manager
	longestURL      = 57   // https://sqs.cn-northwest-1.amazonaws.com.cn/123456789012/
	longestName     = 80
	longestBucket   = 95   // PERDURE_PAYLOAD_BUCKET with a name of 63 characters
	longestEndpoint = 73   // https://<32 characters>.lambda-url.ap-southeast-1.on.aws
	otherVariables  = 1400 // measured with all names at their maximum length
	otherFields     = 845  // of the configuration, measured without the names of the queues and the table
	bucketField     = 82   // payloadBucket with a name of 63 characters
)

// Hub describes the parts of a hub whose lengths vary.
type Hub struct {
	Name   string
	Queues []WorkQueue
	// Longest returns the length of the name of a resource if it is known, and most otherwise.
	Longest func(part string, most int) int
	// Table is the maximum length of the table's name, and Schedules the length of the schedules in JSON.
	Table, Schedules int
	// Domain is the custom domain of the API, or empty.
	Domain  string
	Payload bool // whether the hub has a payload store
}

// WorkQueue describes a work queue. If it is exclusive, it has a second queue, whose name has a suffix.
type WorkQueue struct{ Name, ExclusiveSuffix string }

// Check returns an error if the environment of a function or the configuration may exceed its limit.
func (h *Hub) Check() error {
	buckets := 0
	if h.Payload {
		buckets = 1
	}
	urls := h.workQueues()
	if total := otherVariables + urls + buckets*longestBucket + h.Schedules; total > mostEnvironment {
		return fmt.Errorf("task hub %s: the environment of a function may need %d bytes for %d work queues and "+
			"Schedules, the limit is %d: shorten NamePrefix, create schedules through the API, or split the hub",
			h.Name, total, len(h.Queues), mostEnvironment)
	}
	if total := h.otherConfig() + buckets*bucketField + urls; total > mostConfig {
		return fmt.Errorf("task hub %s: the parameter with the configuration may need %d bytes for %d work queues, "+
			"the limit is %d: shorten NamePrefix or the names of the queues, or split the hub",
			h.Name, total, len(h.Queues), mostConfig)
	}
	return nil
}

// workQueues returns the maximum length of the URLs of the work queues and their dead-letter queues in a JSON object.
func (h *Hub) workQueues() (total int) {
	const punctuation = 6 // "":"",
	for _, queue := range h.Queues {
		names := h.Longest("work-"+queue.Name, longestName) + h.Longest("work-"+queue.Name+"-dead-letters", longestName)
		total += names + 2*(longestURL+len(queue.Name)+punctuation)
		if n := len(queue.ExclusiveSuffix); n > 0 {
			total += names + 2*(longestURL+len(queue.Name)+punctuation+2*n)
		}
	}
	return total
}

// otherConfig returns the maximum length of the hub's configuration without the work queues and the payload store.
func (h *Hub) otherConfig() int {
	total := otherFields + h.Table
	for part, times := range map[string]int{ // a URL or ARN each time
		"inbox.fifo": 1, "inbox-dead-letters.fifo": 1, "timers": 2, "timers-dead-letters": 2,
	} {
		total += times * h.Longest(part, longestName)
	}
	if h.Domain != "" {
		total += max(0, len("https://"+h.Domain)-longestEndpoint)
	}
	return total
}
